// The token may stand behind the # of the address, which browsers send to no server.
const token = document.querySelector("input[name=token]");
if (token && location.hash.length > 1) {
  token.value = decodeURIComponent(location.hash.slice(1));
  history.replaceState(null, "", location.pathname);
}
// Enter begins wherever the focus is; fields and buttons handle it themselves.
document.addEventListener("keydown", (event) => {
  if (event.key === "Enter" && !event.target.closest("input, button")) {
    document.querySelector("form").requestSubmit();
  }
});

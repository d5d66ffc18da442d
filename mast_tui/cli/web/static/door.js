// The token may stand behind the # of the address, which browsers tell no server.
const token = document.querySelector("input[name=token]");
if (token && location.hash.length > 1) {
  token.value = decodeURIComponent(location.hash.slice(1));
  history.replaceState(null, "", location.pathname);
}

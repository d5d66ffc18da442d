// Keys go to the app from its first picture on, and to the way back in when it has ended.
new MutationObserver((_, watch) => {
  const state = document.body.classList;
  if (state.contains("-closed")) {
    document.querySelector(".ended button").focus();
    watch.disconnect();
  } else if (state.contains("-first-byte")) {
    document.querySelector(".xterm-helper-textarea").focus();
  }
}).observe(document.body, { attributeFilter: ["class"] });

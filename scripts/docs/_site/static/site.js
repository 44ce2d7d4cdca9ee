// The recording on the first page plays, and is light or dark as the site is.
document.addEventListener("DOMContentLoaded", () => {
  const frame = document.querySelector("iframe.recording");
  if (!frame) return;
  const page = frame.getAttribute("src").split("#")[0];
  const show = () => {
    const theme = document.documentElement.dataset.theme === "dark" ? "dark" : "light";
    if (frame.dataset.theme === theme) return;
    frame.dataset.theme = theme;
    frame.src = `${page}?${theme}#theme=${theme}&play`;
  };
  show();
  new MutationObserver(show).observe(document.documentElement, { attributeFilter: ["data-theme"] });
});

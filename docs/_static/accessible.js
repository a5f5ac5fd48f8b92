// Two things that the theme leaves out: the level of headings in the list of contents, and a way to reach what scrolls with the keyboard.
document.addEventListener("DOMContentLoaded", () => {
  for (const caption of document.querySelectorAll('p.caption[role="heading"]')) caption.setAttribute("aria-level", "2");
  const reach = () => {
    for (const box of document.querySelectorAll("pre, .table-wrapper"))
      if (box.scrollWidth > box.clientWidth) box.setAttribute("tabindex", "0");
  };
  reach();
  window.addEventListener("resize", reach);
});

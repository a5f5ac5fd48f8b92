// What the theme leaves out: the level of headings in the list of contents, names of the two lists beside the page, and a
// way to reach what scrolls with the keyboard.
document.addEventListener("DOMContentLoaded", () => {
  for (const caption of document.querySelectorAll('p.caption[role="heading"]')) caption.setAttribute("aria-level", "2");
  document.querySelector(".sidebar-drawer")?.setAttribute("aria-label", "All pages");
  document.querySelector(".toc-drawer")?.setAttribute("aria-label", "This page");
  const reach = () => {
    for (const box of document.querySelectorAll("pre, .table-wrapper, .math-wrapper"))
      if (box.scrollWidth > box.clientWidth) box.setAttribute("tabindex", "0");
  };
  reach();
  window.addEventListener("resize", reach);
});

// What the theme leaves out: the level of headings in the list of contents, names of the two lists beside the page, and
// ways to reach what scrolls and what opens these lists with the keyboard.
document.addEventListener("DOMContentLoaded", () => {
  for (const caption of document.querySelectorAll('p.caption[role="heading"]')) caption.setAttribute("aria-level", "2");
  document.querySelector(".sidebar-drawer")?.setAttribute("aria-label", "All pages");
  document.querySelector(".toc-drawer")?.setAttribute("aria-label", "This page");
  // The theme's switches are check boxes that are not displayed: their labels get buttons.
  for (const label of document.querySelectorAll("label.nav-overlay-icon, label.toc-overlay-icon, .sidebar-tree label")) {
    const box = document.getElementById(label.htmlFor);
    const button = document.createElement("button");
    const update = () => button.setAttribute("aria-expanded", String(box.checked));
    button.type = "button";
    button.className = "switch";
    button.setAttribute("aria-label", box.getAttribute("aria-label"));
    button.append(...label.childNodes);
    button.addEventListener("click", () => box.click());
    label.append(button);
    box.addEventListener("change", update);
    update();
  }
  document.addEventListener("keydown", (event) => {
    if (event.key !== "Escape") return;
    for (const box of document.querySelectorAll(".sidebar-toggle:checked")) box.click();
  });
  const reach = () => {
    for (const box of document.querySelectorAll("pre, .table-wrapper, .math-wrapper"))
      if (box.scrollWidth > box.clientWidth) box.setAttribute("tabindex", "0");
  };
  reach();
  window.addEventListener("resize", reach);
});

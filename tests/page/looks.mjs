// What is looked at in any page: names, contrast, what stands out of its place.

// Controls without a name.
export const namelessControls = (page) => page.evaluate(() => [...document.querySelectorAll("button, input, select, textarea, audio, [role=button]")]
    .filter((each) => each.checkVisibility())
    .filter((each) => !(each.labels?.length || each.getAttribute("aria-label") || (each.matches("button, [role=button]") && each.textContent.trim())))
    .map((each) => each.outerHTML));

// Contrast by WCAG 2.1 of every visible text with the nearest background that is painted.
export const weakTexts = (page) => page.evaluate(() => {
  const canvas = document.createElement("canvas").getContext("2d", {willReadFrequently: true});
  const rgba = (color) => {
    canvas.clearRect(0, 0, 1, 1);
    canvas.fillStyle = color;
    canvas.fillRect(0, 0, 1, 1);
    return [...canvas.getImageData(0, 0, 1, 1).data];
  };
  const luminance = ([r, g, b]) => [r, g, b].map((v) => v / 255).map((v) => (v <= 0.03928 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4))
      .reduce((sum, v, i) => sum + v * [0.2126, 0.7152, 0.0722][i], 0);
  const backgroundOf = (node) => {
    for (let each = node; each; each = each.parentElement) {
      const color = rgba(getComputedStyle(each).backgroundColor);
      if (color[3] === 255) return color;
    }
    return [255, 255, 255, 255];
  };
  const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  const weak = [];
  while (walker.nextNode()) {
    const node = walker.currentNode.parentElement;
    if (!walker.currentNode.data.trim() || !node.checkVisibility() || node.closest(".visually-hidden, .skip, option")) continue;
    const [a, b] = [luminance(rgba(getComputedStyle(node).color)), luminance(backgroundOf(node))];
    const contrast = (Math.max(a, b) + 0.05) / (Math.min(a, b) + 0.05);
    if (contrast < 4.5) weak.push(`${contrast.toFixed(2)} ${node.outerHTML.slice(0, 80)}`);
  }
  return weak;
});

// What stands out of the result's card at its sides, and the room below the last thing in it; pixels.
export const cardFaults = (page) => page.evaluate(async () => {
  // What was added just now has no size of its own until it is painted (content-visibility).
  for (let i = 0; i < 2; ++i) await new Promise(requestAnimationFrame);
  const card = document.getElementById("result");
  const style = getComputedStyle(card);
  const box = card.getBoundingClientRect();
  const left = box.left + parseFloat(style.borderLeftWidth) + parseFloat(style.paddingLeft);
  const right = box.right - parseFloat(style.borderRightWidth) - parseFloat(style.paddingRight);
  const shown = [...card.querySelectorAll("*")].filter((each) => each.checkVisibility() && !each.closest(".visually-hidden, svg"));
  const places = shown.map((each) => ({name: each.id || each.className || each.tagName, ...each.getBoundingClientRect().toJSON()}));
  const end = Math.max(...places.map((place) => place.bottom));
  return {
    outside: places.filter((place) => place.left < left - 0.5 || place.right > right + 0.5).map((place) => place.name),
    below: Math.round(box.bottom - parseFloat(style.borderBottomWidth) - parseFloat(style.paddingBottom) - end),
    sideways: document.documentElement.scrollWidth - document.documentElement.clientWidth,
  };
});

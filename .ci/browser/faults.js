// Faults of a page as it is laid out now, as lines of text. With `strict` also those of its pictures and its contrast.
(strict) => {
  const found = [];
  const scroller = document.scrollingElement;
  if (scroller.scrollWidth > innerWidth)
    found.push(`the page is ${scroller.scrollWidth} px wide, the window ${innerWidth}`);
  if (document.body.innerText.includes("\\|")) found.push("a pipe has the backslash before it that Markdown wants");

  const isNarrow = innerWidth < 720;
  const sized = (name, part, place) => {
    if (part.scrollWidth > place.clientWidth + 1)
      found.push(`${name} is ${part.scrollWidth} px wide, its place ${place.clientWidth}: ` +
        part.textContent.replace(/\s+/g, " ").slice(0, 60));
  };
  for (const table of document.querySelectorAll("table")) sized("a table", table, table.parentElement);
  // drawings and printed tables have lines that must not be broken: they scroll on narrow windows
  for (const code of document.querySelectorAll("pre > code"))
    if (!isNarrow || !code.closest(".language-text")) sized("code", code, code);
  if (!strict) return found;

  for (const picture of document.querySelectorAll("svg"))
    if (!picture.querySelector("title")?.textContent || !picture.querySelector("desc")?.textContent)
      found.push("a picture says nothing in words");

  // Colours are [red, green, blue, alpha], of 0 to 255 and 0 to 1.
  const parsed = (text) => {
    const numbers = text.match(/[\d.]+/g)?.map(Number) ?? [0, 0, 0, 0];
    return [...numbers.slice(0, 3), numbers[3] ?? 1];
  };
  const over = (top, below) => [0, 1, 2].map((k) => top[k] * top[3] + below[k] * (1 - top[3])).concat(1);
  const luminance = (colour) => {
    const [r, g, b] = colour.map((c) => c / 255).map((c) => c <= 0.04045 ? c / 12.92 : ((c + 0.055) / 1.055) ** 2.4);
    return 0.2126 * r + 0.7152 * g + 0.0722 * b;
  };
  const ancestors = (element) => element ? [...ancestors(element.parentElement), element] : [];
  const boxesBelow = (text) => {
    const place = text.getBoundingClientRect();
    const [x, y] = [place.x + place.width / 2, place.y + place.height / 2];
    return [...text.ownerSVGElement.querySelectorAll("rect")].filter((box) => {
      const its = box.getBoundingClientRect();
      const before = box.compareDocumentPosition(text) & Node.DOCUMENT_POSITION_FOLLOWING;
      return before && its.left <= x && x <= its.right && its.top <= y && y <= its.bottom;
    });
  };

  const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  for (let node = walker.nextNode(); node; node = walker.nextNode()) {
    const element = node.parentElement;
    if (!node.textContent.trim() || !element.checkVisibility() || element.closest("title, desc, script, style")) continue;
    const svg = element.ownerSVGElement;
    let below = [255, 255, 255, 1], opacity = 1;
    for (const one of ancestors(element)) {
      const style = getComputedStyle(one);
      below = over(parsed(style.backgroundColor), below);
      opacity *= Number(style.opacity);
    }
    if (svg) for (const box of boxesBelow(element)) below = over(parsed(getComputedStyle(box).fill), below);
    const ink = parsed(svg ? getComputedStyle(element).fill : getComputedStyle(element).color);
    const seen = over([ink[0], ink[1], ink[2], ink[3] * opacity], below);
    const [dark, light] = [luminance(seen), luminance(below)].sort((a, b) => a - b);
    const contrast = (light + 0.05) / (dark + 0.05);
    if (contrast < 4.5) found.push(`contrast is ${contrast.toFixed(2)}: ${node.textContent.trim().slice(0, 60)}`);
  }
  return found;
}

// Regions of a picture from the structured answers of models that give places (Florence-2). No DOM.
//
// A task's answer is {"bboxes": [[x1, y1, x2, y2], ..], "labels": [..]}, {"quad_boxes": [[x1, y1, .., x4, y4], ..],
// "labels"}, {"polygons": [[[x, y, ..], ..], ..], "labels"} or {"bboxes", "bboxes_labels", "polygons",
// "polygons_labels"}, in pixels of the picture that was sent.

const isNumbers = (value) => Array.isArray(value) && value.every((each) => Number.isFinite(each));

/** [x, y, x, y, ..] -> [[x, y], ..]; null for what is none. */
function pointsOf(numbers) {
  if (!isNumbers(numbers) || numbers.length < 2) return null;
  return Array.from({length: Math.floor(numbers.length / 2)}, (_, i) => [numbers[2 * i], numbers[2 * i + 1]]);
}

function boxShapes(box) {
  if (!isNumbers(box) || box.length !== 4) return null;
  const [x1, y1, x2, y2] = box;
  return [[[x1, y1], [x2, y1], [x2, y2], [x1, y2]]];
}

const quadShapes = (quad) => (isNumbers(quad) && quad.length === 8 ? [pointsOf(quad)] : null);

function polygonShapes(polygons) {
  const shapes = Array.isArray(polygons) ? polygons.map(pointsOf) : [];
  return shapes.length > 0 && !shapes.includes(null) ? shapes : null;
}

const kKinds = [
  {places: "bboxes", labels: ["bboxes_labels", "labels"], kind: "box", shapes: boxShapes},
  {places: "quad_boxes", labels: ["labels"], kind: "box", shapes: quadShapes},
  {places: "polygons", labels: ["polygons_labels", "labels"], kind: "outline", shapes: polygonShapes},
];

/** The regions of one task's answer; null where it is anything else. */
function regionsOfAnswer(answer) {
  const regions = [];
  let known = false;
  for (const {places, labels, kind, shapes} of kKinds) {
    const all = answer?.[places];
    if (all === undefined) continue;
    if (!Array.isArray(all)) return null;
    known = true;
    const names = labels.map((name) => answer[name]).find(Array.isArray) ?? [];
    for (const [index, each] of all.entries()) {
      const found = shapes(each);
      if (!found) return null;
      regions.push({label: String(names[index] ?? "").trim(), kind, shapes: found});
    }
  }
  return known ? regions : null;
}

/**
 * structured: what an answer says. Gives {regions, rest}: the regions ({label, kind: "box" or "outline", shapes: lists
 * of points}) in their order, null where the answer tells of no places; and what is no region, null where nothing is
 * left.
 */
export function splitStructured(structured) {
  if (structured === null || typeof structured !== "object" || Array.isArray(structured)) {
    return {regions: null, rest: structured ?? null};
  }
  let regions = null;
  const rest = {};
  for (const [task, answer] of Object.entries(structured)) {
    const own = regionsOfAnswer(answer);
    if (own) regions = [...(regions ?? []), ...own];
    else rest[task] = answer;
  }
  return {regions, rest: regions && Object.keys(rest).length === 0 ? null : rest};
}

/** Same labels have the same of `count` hues, in the order in which they come. */
export function huesOf(regions, count) {
  const labels = [...new Set(regions.map((region) => region.label))];
  return regions.map((region) => labels.indexOf(region.label) % count);
}

/** Where a region is: [left, top, right, bottom]. */
export function boundsOf({shapes}) {
  const points = shapes.flat();
  const [xs, ys] = [points.map(([x]) => x), points.map(([, y]) => y)];
  const least = (values) => values.reduce((a, b) => Math.min(a, b));
  const most = (values) => values.reduce((a, b) => Math.max(a, b));
  return [least(xs), least(ys), most(xs), most(ys)];
}

/** "picture 640 x 480, used 384 x 384, 577 positions", from an answer's `images`. */
export function pictureWords({width, height, used_width, used_height, tiles, positions}) {
  const parts = [`picture ${width} \u00d7 ${height}`, `used ${used_width} \u00d7 ${used_height}`,
                 tiles > 1 && `${tiles} tiles`, `${positions} position${positions === 1 ? "" : "s"}`];
  return parts.filter(Boolean).join(", ");
}

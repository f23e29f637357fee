// Small helpers around the document.

/** The element with this id; a page without it is a mistake of ours. */
export function byId(id) {
  const element = document.getElementById(id);
  if (!element) throw new Error(`no element #${id}`);
  return element;
}

/** element("p", {className: "x"}, "text", child) */
export function element(name, properties = {}, ...children) {
  const made = document.createElement(name);
  for (const [key, value] of Object.entries(properties)) {
    if (key in made) made[key] = value;
    else made.setAttribute(key, value);
  }
  made.append(...children);
  return made;
}

export function fillSelect(select, choices, first = null) {
  const options = choices.map(({code, name}) => element("option", {value: code}, name));
  if (first !== null) options.unshift(element("option", {value: ""}, first));
  select.replaceChildren(...options);
}

/** 75.5 -> 1:15, 3675 -> 1:01:15 */
export function clockTime(seconds) {
  const whole = Math.floor(seconds);
  const pad = (value) => String(value).padStart(2, "0");
  const hours = Math.floor(whole / 3600);
  const minutes = Math.floor(whole / 60) % 60;
  return hours > 0 ? `${hours}:${pad(minutes)}:${pad(whole % 60)}` : `${minutes}:${pad(whole % 60)}`;
}

/** For ears: "1 minute 15 seconds". */
export function spokenTime(seconds) {
  const whole = Math.floor(seconds);
  const parts = [[Math.floor(whole / 3600), "hour"], [Math.floor(whole / 60) % 60, "minute"], [whole % 60, "second"]]
      .filter(([count]) => count > 0).map(([count, unit]) => `${count} ${unit}${count === 1 ? "" : "s"}`);
  return parts.join(" ") || "0 seconds";
}

export function fileSize(bytes) {
  if (bytes < 1024) return `${bytes} bytes`;
  const units = ["KiB", "MiB", "GiB"];
  let value = bytes / 1024;
  let unit = 0;
  while (value >= 1024 && unit + 1 < units.length) {
    value /= 1024;
    ++unit;
  }
  return `${value.toFixed(value < 10 ? 1 : 0)} ${units[unit]}`;
}

/** An empty field is left to the model; what is no number goes to the server as it is, which says what it wants. */
export function numberOf(text) {
  if (text === "") return undefined;
  const value = Number(text);
  return Number.isFinite(value) ? value : text;
}

/** Shows errors of a form beside the controls that they are about. */
export class FieldErrors {
  /** root holds an element [data-error-for="names of fields"] for each control that can be wrong, and one for "*". */
  constructor(root) {
    this.root = root;
  }

  clear() {
    for (const place of this.root.querySelectorAll("[data-error-for]")) {
      place.textContent = "";
      this.#control(place)?.removeAttribute("aria-invalid");
    }
  }

  /** param as the server gives it ("stop[0]", "timestamp_granularities[]"); unknown ones go to the form's own place. */
  show(message, param = null) {
    this.clear();
    const name = (param ?? "").split(/[[.]/)[0];
    const places = [...this.root.querySelectorAll("[data-error-for]")];
    const place = places.find((each) => name && each.dataset.errorFor.split(" ").includes(name))
        ?? places.find((each) => each.dataset.errorFor === "*");
    const control = this.#control(place);
    // The field may have no control of its own here; its name is all that tells which it was.
    place.textContent = !control && param && !message.includes(name) ? `${param}: ${message}` : message;
    const folded = place.closest("details");
    if (folded) folded.open = true;
    control?.setAttribute("aria-invalid", "true");
    control?.focus();
  }

  #control(place) {
    return place?.id ? this.root.querySelector(`[aria-describedby~="${place.id}"]`) : null;
  }
}

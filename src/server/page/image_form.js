// A picture to be read: a file that is chosen, dropped or pasted, and the text beside it.
import {byId, FieldErrors, numberOf} from "./dom.js";
import {FileDrop} from "./file_drop.js";

const kTypes = ["image/jpeg", "image/png", "image/webp"];

/** A promise of the file as a data: URL, which is what the server takes and the page's policy lets it show. */
function dataUrlOf(file) {
  return new Promise((resolve, reject) => {
    const reader = new FileReader();
    reader.addEventListener("load", () => resolve(reader.result));
    reader.addEventListener("error", () => reject(reader.error));
    reader.readAsDataURL(file);
  });
}

export class ImageForm {
  #picture = null;

  /** onPicture(): another picture is there, or none. */
  constructor(onPicture) {
    this.onPicture = onPicture;
    this.form = byId("image-form");
    this.errors = new FieldErrors(this.form);
    this.preview = byId("image-preview");
    this.drop = new FileDrop(byId("image-drop"), {
      isOpen: () => !this.form.hidden, onFile: (file) => this.#take(file), pastes: true,
    });
    this.preview.addEventListener("load", () => this.#showPreview(true));
    this.preview.addEventListener("error", () => this.#showPreview(false));
  }

  /** {name, address: a data: URL}, or null while there is none. */
  get picture() { return this.#picture; }

  /** What has to be done before a run, or "". */
  get lack() {
    if (this.#picture) return "";
    return this.drop.file ? "The picture is still being read." : "Choose, drop or paste a picture first.";
  }

  /** model: the `transept` member of the server's model, or {}. */
  adapt(model) { this.hasStructuredAnswers = model.has_structured_answers === true; }

  /** Fields of /v1/completions; undefined ones are left out of JSON. */
  completion() {
    const text = byId("image-prompt").value;
    return {
      prompt: {prompt: text.trim() ? text : undefined, multi_modal_data: {image: this.#picture.address}},
      max_tokens: numberOf(byId("image-max-tokens").value.trim()),
      temperature: numberOf(byId("image-temperature").value.trim()),
      return_structured: this.hasStructuredAnswers || undefined,
    };
  }

  async #take(file) {
    this.#picture = null;
    this.errors.clear();
    this.preview.hidden = true;
    byId("image-note").hidden = true;
    this.onPicture();
    if (!file) {
      this.preview.removeAttribute("src");
      return;
    }
    if (file.type && !kTypes.includes(file.type)) {  // without a type the server tells by its bytes
      this.drop.set(null);
      this.errors.show(`${file.name} is not a JPEG, PNG or WebP picture.`, "multi_modal_data");
      return;
    }
    try {
      const address = await dataUrlOf(file);
      if (this.drop.file !== file) return;  // another one came meanwhile
      this.#picture = {name: file.name, address};
      this.preview.src = address;
    } catch (error) {
      if (this.drop.file !== file) return;
      this.drop.set(null);
      this.errors.show(`The browser cannot read the file: ${error.message}`, "multi_modal_data");
    }
  }

  #showPreview(can) {
    if (!this.#picture) return;
    this.preview.hidden = !can;
    byId("image-note").hidden = can;
  }
}

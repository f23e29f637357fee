// Text to be translated, or completed by whatever the model does.
import {byId, FieldErrors, fillSelect, numberOf} from "./dom.js";
import {languageChoices} from "./languages.js";

export class TextForm {
  constructor() {
    this.form = byId("text-form");
    this.errors = new FieldErrors(this.form);
    this.translates = false;
    byId("text").addEventListener("keydown", (event) => {
      if (event.key === "Enter" && (event.ctrlKey || event.metaKey)) this.form.requestSubmit();
    });
    byId("swap").addEventListener("click", () => {
      const [source, target] = [byId("source"), byId("target")];
      [source.value, target.value] = [target.value, source.value];
    });
  }

  /** model: the `transept` member of the server's model, or {}. */
  adapt(model) {
    const codes = (model.source_target_languages ?? []).filter((code) => typeof code === "string");
    this.translates = codes.length > 0;
    byId("pair").hidden = !this.translates;
    byId("decoder-field").hidden = this.translates;
    byId("run-text-label").textContent = this.translates ? "Translate" : "Run";
    if (!this.translates) return;
    const choices = languageChoices(codes);
    fillSelect(byId("source"), choices);
    fillSelect(byId("target"), choices);
    const english = choices.find(({code}) => /^en(g)?\b|^en[g]?_/.test(code)) ?? choices[0];
    byId("source").value = english.code;
    byId("target").value = (choices.find(({code}) => code !== english.code) ?? english).code;
  }

  get text() { return byId("text").value; }

  /** Fields that both routes take; undefined ones are left out of JSON. */
  #common() {
    return {
      max_tokens: numberOf(byId("max-tokens").value.trim()),
      temperature: numberOf(byId("text-temperature").value.trim()),
    };
  }

  completion() {
    return {prompt: this.text, decoder_prompt: byId("decoder-prompt").value || undefined, ...this.#common()};
  }

  /** Each line is a text of its own: models of translation know sentences and paragraphs, not documents. */
  translation() {
    return {
      text: this.text.split("\n").filter((line) => line.trim()),
      source_lang: byId("source").value,
      target_lang: byId("target").value,
      ...this.#common(),
    };
  }

  /** The translated lines where the lines of `text` were, blank ones between them. */
  static rejoin(text, texts) {
    let next = 0;
    return text.split("\n").map((line) => (line.trim() ? texts[next++] ?? "" : "")).join("\n");
  }
}

// Asks for the API key. It is kept for this tab alone (sessionStorage).

export class KeyDialog {
  #answer = null;  // {promise, resolve} while the dialog is open

  constructor(dialog, api) {
    this.dialog = dialog;
    this.api = api;
    this.field = dialog.querySelector("input");
    this.reason = dialog.querySelector("[data-reason]");
    dialog.querySelector("form").addEventListener("submit", (event) => {
      event.preventDefault();
      this.#save(this.field.value.trim());
    });
    dialog.querySelector("[data-forget]").addEventListener("click", () => {
      this.api.key = "";
      this.#close(false);
    });
    dialog.querySelector("[data-dismiss]").addEventListener("click", () => this.#close(false));
    dialog.addEventListener("close", () => this.#finish(false));  // Escape
  }

  /** A promise of whether a key was given. Who asks while the dialog is open waits for the same answer. */
  ask(reason) {
    if (this.#answer) return this.#answer.promise;
    let resolve;
    const promise = new Promise((done) => { resolve = done; });
    this.#answer = {promise, resolve};
    this.reason.textContent = reason;
    this.reason.hidden = !reason;
    this.field.setAttribute("aria-invalid", String(Boolean(reason)));
    this.field.value = this.api.key;
    this.dialog.querySelector("[data-forget]").hidden = !this.api.key;
    this.dialog.showModal();
    this.field.select();
    return promise;
  }

  #save(key) {
    if (!key) {
      this.reason.textContent = "Enter a key.";
      this.reason.hidden = false;
      this.field.setAttribute("aria-invalid", "true");
      this.field.focus();
      return;
    }
    // Header values are visible ASCII; the browser would throw on others.
    if (!/^[\x21-\x7e]+$/.test(key)) {
      this.reason.textContent = "A key has letters, digits and signs of ASCII only, and no blanks.";
      this.reason.hidden = false;
      return;
    }
    this.api.key = key;
    this.#close(true);
  }

  #close(given) {
    this.#finish(given);
    this.dialog.close();
  }

  #finish(given) {
    this.#answer?.resolve(given);
    this.#answer = null;
  }
}

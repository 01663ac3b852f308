// An edit in a dialog over the page: its menu, what it would do as one types, then Apply. Without this it is a page.
"use strict";
let sheet = null, trying = 0, tries = 0;

function opened(edit) {
  if (!$("sheet-body") || sheet) {
    if (!sheet) {
      sheet = document.createElement("dialog");
      sheet.className = "over";
      document.body.append(sheet);
    }
    sheet.setAttribute("aria-label", edit.querySelector("h1").textContent);
    sheet.replaceChildren(edit);
    if (!sheet.open) sheet.showModal();
  } else $("sheet-body").replaceWith(edit);
  localise(edit);
  const first = edit.querySelector("#edit-value, #help-q") || edit.querySelector("[aria-current]") || edit.querySelector("a, button");
  if (first) first.focus();
  marks(edit);
}
async function load(href) {
  try {
    const got = await fetch(href, { headers: { "X-Part": "1" }, credentials: "same-origin" });
    const edit = new DOMParser().parseFromString(await got.text(), "text/html").getElementById("sheet-body");
    if (edit) opened(document.importNode(edit, true)); else location.assign(href);
  } catch { toast("That did not arrive. Try it again."); }
}
function marks(root) { // the words at fault, underlined behind what is typed
  const text = root.querySelector("textarea#edit-value"), behind = root.querySelector(".behind");
  if (!text || !behind) return;
  underline(behind, text.value, [...root.querySelectorAll(".at[data-line]")].map((el) => ({ line: +el.dataset.line, column: +el.dataset.column, length: +el.dataset.length })));
}
async function tryIt(form) {
  const mine = ++tries, body = new URLSearchParams(new FormData(form));
  body.set("step", "preview");
  form.querySelector("#edit-preview").setAttribute("aria-busy", "true");
  try {
    const got = await fetch(form.action, { method: "POST", body, headers: { Accept: "text/html" }, credentials: "same-origin" });
    const fresh = new DOMParser().parseFromString(await got.text(), "text/html").getElementById("edit-preview");
    if (mine !== tries || !fresh || !form.isConnected) return;
    const shown = document.importNode(fresh, true);
    localise(shown);
    form.querySelector("#edit-preview").replaceWith(shown);
    form.querySelector(":scope > .fault").hidden = true;
    marks(form);
  } catch { toast("That did not arrive. Try it again."); }
}
document.addEventListener("click", (e) => {
  const link = e.target.closest("a[data-edit], a[data-over]");
  if (link && !e.metaKey && !e.ctrlKey && !e.shiftKey) { e.preventDefault(); load(link.href); return; }
  if (sheet && e.target.closest("[data-close]") && sheet.contains(e.target)) { e.preventDefault(); sheet.close(); return; }
  const mend = e.target.closest("#edit-preview .mend"), form = mend && mend.closest("form");
  if (!mend) return;
  const text = form.querySelector("#edit-value");
  text.value = mended(text.value, mend.dataset);
  tryIt(form);
});
document.addEventListener("input", (e) => {
  const form = e.target.closest("form[data-try]");
  if (!form || e.target.name !== "value") return;
  const behind = form.querySelector(".behind");
  if (behind) underline(behind, e.target.value, []);
  clearTimeout(trying);
  trying = setTimeout(() => tryIt(form), 250);
});
document.addEventListener("submit", async (e) => {
  const form = e.target;
  if (!form.matches("form[data-try]")) return;
  e.preventDefault();
  if (form.classList.contains("busy")) return;
  if (e.submitter && e.submitter.value === "preview") { tryIt(form); return; }
  form.classList.add("busy");
  try {
    const got = await send(form, e.submitter);
    if (got.accepted) {
      toast(got.text);
      if (sheet && sheet.contains(form)) { sheet.close(); refresh(); } else location.assign(form.elements.back.value);
      return;
    }
    await tryIt(form);
    const fault = form.querySelector(":scope > .fault");
    fault.replaceChildren();
    words(fault, got.text);
    fault.hidden = false;
  } catch { toast("That did not arrive. Try it again."); } finally { form.classList.remove("busy"); }
});

// --- copying a text of the record -------------------------------------------------------------------------------------
document.querySelectorAll("[data-copy]").forEach((el) => { el.hidden = false; });
document.addEventListener("click", async (e) => {
  const el = e.target.closest("[data-copy]");
  if (!el) return;
  const from = $(el.dataset.copy);
  try { await navigator.clipboard.writeText(from.textContent); toast("Copied."); } catch { // no clipboard here: it is marked, to be copied by hand
    getSelection().selectAllChildren(from);
    toast("It is marked; copy it with the keyboard.");
  }
});

// --- help, by its button or the keyboard --------------------------------------------------------------------------------
document.addEventListener("keydown", (e) => {
  const link = document.querySelector("a[data-over]");
  const typing = e.target.closest("input, textarea, select, [contenteditable]");
  if (!link || !((e.key === "?" && !typing && !e.ctrlKey && !e.metaKey) || (e.key === "/" && (e.ctrlKey || e.metaKey)))) return;
  e.preventDefault();
  load(link.href);
});
document.addEventListener("input", (e) => {
  if (e.target.id !== "help-q") return;
  const wanted = e.target.value.trim().toLowerCase().split(/\s+/);
  let shown = 0;
  document.querySelectorAll("#sheet-body .help-entry").forEach((el) => {
    el.hidden = !wanted.every((word) => el.textContent.toLowerCase().includes(word));
    shown += !el.hidden;
  });
  document.querySelectorAll("#sheet-body .help-group").forEach((el) => { el.hidden = !el.querySelector(".help-entry:not([hidden])"); });
  $("help-none").hidden = shown > 0;
});
addEventListener("beforeprint", () => document.querySelectorAll("time[data-as]").forEach((el) => { el.textContent = said(new Date(el.dateTime), "full"); }));
addEventListener("afterprint", () => localise(document));

// The room, live: times in the reader's zone, posts without leaving the page, the composer's checks, what moves.
"use strict";
const $ = (id) => document.getElementById(id);
const html = (el) => el.outerHTML;
const stood = new Map(); // part's id -> its HTML as the server sent it
document.querySelectorAll("[data-part][id], [data-list] > [id]").forEach((el) => stood.set(el.id, html(el)));

// --- moments ---------------------------------------------------------------------------------------------------------
const hour = new Intl.DateTimeFormat("en-GB", { hour: "2-digit", minute: "2-digit" });
const day = new Intl.DateTimeFormat("en-GB", { weekday: "short" });
const date = new Intl.DateTimeFormat("en-GB", { day: "numeric", month: "short" });
function said(at, as) {
  const now = new Date();
  const days = Math.round((new Date(at).setHours(0, 0, 0, 0) - new Date(now).setHours(0, 0, 0, 0)) / 864e5);
  if (as === "full") return `${day.format(at)} ${date.format(at)}, ${hour.format(at)}`;
  if (!days) return hour.format(at);
  return Math.abs(days) < 7 ? `${day.format(at)} ${hour.format(at)}` : `${date.format(at)} ${hour.format(at)}`;
}
function localise(root) {
  root.querySelectorAll("time[data-as]").forEach((el) => {
    el.textContent = said(new Date(el.dateTime), el.dataset.as);
    el.title = new Date(el.dateTime).toLocaleString();
  });
}
localise(document);
setInterval(() => document.querySelectorAll(".nowline time, .me time").forEach((el) => { el.textContent = hour.format(new Date()); }), 15000);

// --- the page as it is now -------------------------------------------------------------------------------------------
let fetching = false, again = false;
async function refresh() {
  if (fetching) { again = true; return; }
  fetching = true;
  try {
    const got = await fetch(location.href, { headers: { "X-Part": "1" }, credentials: "same-origin" });
    if (got.status === 401 || got.redirected) { location.reload(); return; }
    if (got.ok) patch(new DOMParser().parseFromString(await got.text(), "text/html"));
  } catch { /* the stream says when it is back */ } finally {
    fetching = false;
    if (again) { again = false; setTimeout(refresh, 120); }
  }
}
function patch(doc) {
  const talk = $("talk");
  const down = talk && talk.scrollHeight - talk.scrollTop - talk.clientHeight < 80;
  const grown = talk && talk.hasAttribute("data-list") ? list(talk, doc.getElementById("talk")) : false;
  doc.querySelectorAll("[data-part][id]").forEach((fresh) => {
    const old = $(fresh.id);
    if (old) swap(old, fresh);
    else if (fresh.parentElement.id && $(fresh.parentElement.id)) $(fresh.parentElement.id).append(place(fresh));
  });
  if (grown && down) talk.scrollTop = talk.scrollHeight;
  document.title = doc.title;
}
function list(talk, fresh) {
  const ids = new Set([...fresh.children].map((el) => el.id));
  [...talk.children].forEach((el) => { if (!ids.has(el.id)) { el.remove(); stood.delete(el.id); } });
  let before = null, grown = false;
  for (const el of [...fresh.children]) {
    if ($(el.id)) { before = swap($(el.id), el); continue; }
    const made = place(el);
    made.classList.add("fresh");
    before ? before.after(made) : talk.prepend(made);
    before = made;
    grown = true;
  }
  return grown;
}
function place(el) {
  stood.set(el.id, html(el));
  const made = document.importNode(el, true);
  localise(made);
  return made;
}
function swap(old, fresh) {
  if (stood.get(old.id) === html(fresh)) return old;
  const made = place(fresh);
  const focus = old.contains(document.activeElement) ? document.activeElement : null;
  old.querySelectorAll("details[open][id]").forEach((el) => { const to = made.querySelector(`#${CSS.escape(el.id)}`); if (to) to.open = true; });
  old.querySelectorAll("input:not([type=hidden]), textarea, select").forEach((el) => {
    const to = el.id ? made.querySelector(`#${CSS.escape(el.id)}`) : null;
    if (to && el.type === "file") { if (el.files.length) to.replaceWith(el); } // a chosen file cannot be set again
    else if (to && el.type === "checkbox") to.checked = el.checked;
    else if (to) to.value = el.value;
  });
  const top = old.scrollTop;
  old.replaceWith(made);
  made.scrollTop = top;
  if (focus) {
    const to = focus.id ? $(focus.id) : focus.name ? made.querySelector(`[name="${CSS.escape(focus.name)}"]${focus.value ? `[value="${CSS.escape(focus.value)}"]` : ""}`) : null;
    if (to) to.focus({ preventScroll: true });
    else { made.tabIndex = -1; made.focus({ preventScroll: true }); }
  }
  return made;
}

// --- what moves ------------------------------------------------------------------------------------------------------
if (document.body.dataset.live) {
  let lost = false, soon = 0;
  const moved = () => { clearTimeout(soon); soon = setTimeout(refresh, 60); };
  const connect = () => {
    const stream = new EventSource(document.body.dataset.live);
    stream.addEventListener("hello", () => { if (lost) refresh(); lost = false; if ($("line")) $("line").hidden = true; document.body.dataset.connected = "1"; });
    stream.addEventListener("job", moved);
    stream.onerror = () => {
      lost = true;
      if ($("line")) $("line").hidden = false;
      if (stream.readyState === EventSource.CLOSED) setTimeout(connect, 2000);
    };
    addEventListener("pagehide", () => stream.close(), { once: true });
  };
  connect();
  addEventListener("pageshow", (e) => { if (e.persisted) location.reload(); });
}

// --- posts -----------------------------------------------------------------------------------------------------------
let fading = 0;
function toast(text) {
  const line = document.createElement("p");
  words(line, text);
  $("toast").replaceChildren(line);
  clearTimeout(fading);
  fading = setTimeout(() => $("toast").replaceChildren(), 7000);
}
function words(el, text) { // `words` of the script between backticks
  text.split(/`([^`\n]+)`/).forEach((piece, i) => {
    if (i % 2) { const code = document.createElement("code"); code.textContent = piece; el.append(code); } else el.append(piece);
  });
}
async function send(form, by) {
  const typed = new FormData(form), body = form.enctype === "multipart/form-data" ? typed : new URLSearchParams(typed); // only so do files go along
  if (by && by.name) body.set(by.name, by.value);
  const got = await fetch(form.action, { method: "POST", body, headers: { Accept: "application/json" }, credentials: "same-origin" });
  return { status: got.status, ...(await got.json().catch(() => ({ text: "That did not arrive. Try it again.", accepted: false }))) };
}
document.addEventListener("submit", async (e) => {
  const form = e.target;
  if (!form.matches("form[data-act]")) return;
  e.preventDefault();
  if (form.classList.contains("busy")) return;
  const fault = form.querySelector(".fault"), by = e.submitter;
  if (by && by.dataset.sure && by.dataset.armed !== "1" && fault) { // a write with nobody asked in between: a second tap
    by.dataset.armed = "1";
    fault.replaceChildren();
    words(fault, `\`${by.value}\` starts \`${by.dataset.sure}\` at once; nobody is asked before. Tap it once more.`);
    fault.hidden = false;
    return;
  }
  form.classList.add("busy");
  try {
    const got = await send(form, by);
    if (got.accepted || !fault) { if (fault) fault.hidden = true; toast(got.text); }
    else { fault.replaceChildren(); words(fault, got.text); fault.hidden = false; if (got.status !== 422) toast(got.text); }
    if (got.accepted && form.closest("details")) form.closest("details").open = false;
    if (got.status !== 422) refresh();
  } catch { toast("That did not arrive. Try it again."); } finally { form.classList.remove("busy"); }
});

// --- what is typed and what is wrong in it ---------------------------------------------------------------------------
function underline(behind, value, marks) { // the words at fault, drawn behind the text
  behind.replaceChildren();
  value.split("\n").forEach((line, i) => {
    const chars = Array.from(line);
    let at = 0;
    marks.filter((m) => m.line === i + 1).sort((a, b) => a.column - b.column).forEach((m) => {
      if (m.column - 1 < at) return;
      behind.append(chars.slice(at, m.column - 1).join(""));
      const mark = document.createElement("mark");
      mark.textContent = chars.slice(m.column - 1, m.column - 1 + m.length).join("") || " ";
      behind.append(mark);
      at = m.column - 1 + m.length;
    });
    behind.append(chars.slice(at).join("") + "\n");
  });
}
function mended(value, d) { // the text with one mend made: line, column and length count characters
  const chars = Array.from(value);
  const at = Array.from(value.split("\n").slice(0, d.line - 1).map((l) => `${l}\n`).join("")).length + Number(d.column) - 1;
  chars.splice(at, Number(d.length), ...Array.from(d.text));
  return chars.join("");
}

// --- the composer ----------------------------------------------------------------------------------------------------
const compose = $("compose");
if (compose) {
  const text = $("script"), run = $("run"), hint = $("hint"), behind = compose.querySelector(".behind"), gutter = compose.querySelector(".gutter");
  const key = `draft ${location.pathname}`;
  let waiting = 0, turn = 0, ready = false;
  const draw = (marks) => {
    gutter.textContent = text.value.split("\n").map((_, i) => i + 1).join("\n");
    underline(behind, text.value, marks);
  };
  const rehearse = $("rehearse"), rehearsal = $("rehearsal");
  const allow = (yes) => { run.disabled = !(ready = yes); if (!rehearse.hasAttribute("aria-busy")) rehearse.disabled = !yes; };
  async function check() {
    const mine = ++turn;
    const focus = document.activeElement && $("state").contains(document.activeElement) ? document.activeElement.id : null;
    try {
      const got = await fetch("/check", { method: "POST", body: new URLSearchParams(new FormData(compose)), headers: { Accept: "application/json" }, credentials: "same-origin" });
      if (mine !== turn) return;
      const found = await got.json();
      if (!got.ok) { hint.textContent = found.text; return; }
      if ($("state").dataset.html !== found.html) {
        const held = [...$("state").querySelectorAll("input, select")].map((el) => [el.id, el.value]);
        $("state").innerHTML = $("state").dataset.html = found.html;
        held.forEach(([id, value]) => { if (id && $(id)) $(id).value = value; });
        localise($("state"));
        if (focus && $(focus)) $(focus).focus();
      }
      hint.textContent = found.hint;
      run.textContent = found.label;
      run.value = found.word;
      draw(found.marks);
      allow(found.ready);
    } catch { hint.textContent = "Not connected; it is checked when the room is back"; }
  }
  async function walk() { // every branch of the text as it stands; what is typed meanwhile makes it void
    const typed = () => new URLSearchParams(new FormData(compose)).toString();
    const mine = typed(), since = Date.now();
    rehearse.setAttribute("aria-busy", "true");
    rehearse.disabled = true;
    const line = document.createElement("p");
    line.className = "soft small working";
    const tell = () => { line.textContent = `Walking the branches… ${Math.round((Date.now() - since) / 1000)} s`; };
    tell();
    rehearsal.replaceChildren(line);
    const ticking = setInterval(tell, 1000);
    try {
      const got = await fetch("/rehearse", { method: "POST", body: new URLSearchParams(new FormData(compose)), headers: { Accept: "application/json" }, credentials: "same-origin" });
      const found = await got.json();
      if (mine !== typed()) rehearsal.replaceChildren();
      else if (got.ok) { rehearsal.innerHTML = found.html; rehearsal.tabIndex = -1; rehearsal.focus({ preventScroll: true }); rehearsal.scrollIntoView({ block: "nearest" }); }
      else line.textContent = found.text;
    } catch { line.textContent = "Not connected; nothing was rehearsed."; } finally {
      clearInterval(ticking);
      rehearse.removeAttribute("aria-busy");
      rehearse.disabled = !ready;
    }
  }
  const changed = (wait) => {
    draw([]);
    rehearsal.replaceChildren();
    allow(false);
    sessionStorage.setItem(key, text.value);
    clearTimeout(waiting);
    waiting = setTimeout(check, wait);
  };
  text.addEventListener("input", () => changed(220));
  text.addEventListener("scroll", () => { behind.style.translate = `${-text.scrollLeft}px 0`; });
  $("state").addEventListener("input", () => { clearTimeout(waiting); allow(false); waiting = setTimeout(check, 220); });
  const typed = (what) => document.execCommand("insertText", false, what); // unlike a new value, it can be undone
  text.addEventListener("keydown", (e) => {
    if (e.key !== "Enter" || e.isComposing) return;
    if (e.ctrlKey || e.metaKey) { if (ready) run.click(); else if ($("ask")) $("ask").click(); return; }
    if (e.shiftKey || e.altKey) return;
    const before = text.value.slice(text.value.lastIndexOf("\n", text.selectionStart - 1) + 1, text.selectionStart);
    const [, lead, mark, rest] = before.match(/^([ \t]*)(>[ ]?)?(.*)$/);
    if (!lead && !mark) return;
    e.preventDefault(); // the next line stands under this one; a quote goes on until a line of it stays empty
    if (mark && !rest.trim()) { text.setSelectionRange(text.selectionStart - before.length, text.selectionStart); typed(lead) || text.setRangeText(lead); }
    else typed(`\n${lead}${mark ? "> " : ""}`);
  });
  document.addEventListener("click", async (e) => { // an example, or a proposal to change, takes the place of what is typed, which undo brings back
    const link = e.target.closest("a[href*='?example='], a[href*='?proposal=']");
    if (!link || e.metaKey || e.ctrlKey) return;
    e.preventDefault();
    const doc = new DOMParser().parseFromString(await (await fetch(link.href, { credentials: "same-origin" })).text(), "text/html");
    if ($("examples").matches(":popover-open")) $("examples").hidePopover();
    text.focus();
    text.select();
    $("proposal").value = doc.getElementById("proposal").value;
    typed(doc.getElementById("script").value);
    text.setSelectionRange(0, 0);
    changed(0);
  });
  $("state").addEventListener("click", (e) => {
    const mend = e.target.closest(".mend");
    if (!mend) return;
    e.preventDefault();
    if (mend.value === "discard") { text.value = $("proposal").value = ""; text.focus(); changed(0); return; }
    text.value = mended(text.value, mend.dataset);
    text.focus();
    changed(0);
  });
  compose.addEventListener("submit", async (e) => {
    const by = e.submitter;
    if (by && by.value === "rehearse") { e.preventDefault(); if (ready) walk(); return; }
    if (!by || !(by === run || by.value === "message" || by.value === "ask") || compose.getAttribute("action") === "/jobs") { sessionStorage.removeItem(key); return; }
    e.preventDefault();
    if (by === run && !ready) return;
    compose.classList.add("busy");
    try {
      const got = await send(compose, by);
      if (got.accepted) {
        text.value = $("proposal").value = "";
        if (got.run) history.replaceState(null, "", location.pathname);
        changed(0);
        await refresh();
        $("talk").scrollTop = $("talk").scrollHeight;
      }
      if (!got.run && !got.asked) toast(got.text);
    } catch { toast("That did not arrive. Your text is still here."); } finally { compose.classList.remove("busy"); }
  });
  if (!text.value) text.value = sessionStorage.getItem(key) || "";
  changed(0);
  const talk = $("talk");
  let low = true; // read to the end: it stays so when the composer grows
  talk.addEventListener("scroll", () => { low = talk.scrollHeight - talk.scrollTop - talk.clientHeight < 60; });
  new ResizeObserver(() => { if (low) talk.scrollTop = talk.scrollHeight; }).observe(compose);
  if (location.search.includes("example=")) text.focus({ preventScroll: true });
}

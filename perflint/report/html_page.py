"""Style and script of the `html` report, as constants: the wheel then needs no data files to print a page."""

from __future__ import annotations

STYLE = """
:root{--bg:#fdfdfc;--fg:#1d1f23;--dim:#5d646f;--line:#dcdfe4;--soft:#f2f3f5;--mark:#ffe39a;--link:#0b57b0;
--high:#b3261e;--medium:#8a5a00;--low:#2a6f7a;--add:#e2f5e6;--del:#fde8e8}
@media(prefers-color-scheme:dark){:root{--bg:#15171a;--fg:#e4e6ea;--dim:#9aa3af;--line:#30343a;--soft:#1e2125;
--mark:#5c4a10;--link:#86b7f5;--high:#ff8f86;--medium:#f0bd62;--low:#7cc7d3;--add:#143521;--del:#451f21}}
*{box-sizing:border-box}
[hidden]{display:none!important}
body{margin:0 auto;max-width:72rem;padding:1rem;background:var(--bg);color:var(--fg);
font:15px/1.5 system-ui,sans-serif}
h1{font-size:1.3rem;margin:0}
h2{font-size:1rem;margin:0;overflow-wrap:anywhere}
h3{font-size:.95rem;margin:.8rem 0 .2rem}
p{margin:.4rem 0;overflow-wrap:anywhere}
header{display:flex;flex-wrap:wrap;gap:.2rem 1rem;align-items:baseline}
a{color:var(--link);text-decoration:none}
a:hover{text-decoration:underline}
:focus-visible{outline:2px solid var(--link);outline-offset:2px}
code,pre,.at,h2 a{font-family:ui-monospace,Menlo,Consolas,monospace;font-size:.87em;direction:ltr;
unicode-bidi:isolate}
code{background:var(--soft);padding:.05em .25em;border-radius:3px;overflow-wrap:anywhere}
pre{background:var(--soft);padding:.5rem .6rem;margin:.5rem 0;overflow-x:auto;border-radius:6px;tab-size:4}
.sum{margin:0;color:var(--dim)}
.bad{color:var(--high)}
form{position:sticky;top:0;z-index:1;background:var(--bg);border-bottom:1px solid var(--line);padding:.6rem 0;
display:flex;flex-wrap:wrap;gap:.4rem .8rem;align-items:end;margin-bottom:.8rem}
label{display:flex;flex-direction:column;font-size:.8rem;color:var(--dim)}
input,select,button{font:inherit;font-size:.95rem;color:var(--fg);background:var(--soft);
border:1px solid var(--line);border-radius:5px;padding:.2rem .4rem;max-width:14rem}
output{color:var(--dim);font-size:.9rem}
article{border:1px solid var(--line);border-radius:8px;padding:.7rem .9rem;margin:0 0 .8rem;
scroll-margin-top:9rem;content-visibility:auto;contain-intrinsic-size:auto 18rem}
article:focus{outline:2px solid var(--link);outline-offset:1px}
.tags{display:flex;flex-wrap:wrap;gap:.3rem .5rem;font-size:.82rem}
.tag{border:1px solid var(--line);border-radius:9px;padding:0 .5rem}
.tag.high{color:var(--high);border-color:currentColor}
.tag.medium{color:var(--medium);border-color:currentColor}
.tag.low{color:var(--low);border-color:currentColor}
.n{display:inline-block;min-width:3.2em;padding-right:.9em;text-align:right;color:var(--dim);user-select:none}
.n.hit{color:var(--fg);font-weight:600}
mark{background:var(--mark);color:inherit;border-radius:2px}
.why ol,.why ul{margin:.1rem 0 .4rem;padding-left:1.6rem}
.at{color:var(--dim);overflow-wrap:anywhere}
summary{cursor:pointer;overflow-wrap:anywhere}
.diff span{display:inline-block;min-width:100%}
.add{background:var(--add)}
.del{background:var(--del)}
.hunk{color:var(--dim)}
.errors{border-left:3px solid var(--high);padding-left:.8rem;margin:.8rem 0}
.errors ul{margin:.2rem 0;padding-left:1.1rem}
.rules details{margin:.4rem 0}
.bars{list-style:none;padding:0;margin:.3rem 0}
.bars li{margin:.5rem 0;overflow-wrap:anywhere}
.bar{display:block;width:100%;height:1rem;margin-top:.2rem;background:var(--soft);border-radius:3px}
.bar line{stroke:var(--dim);stroke-width:1;vector-effect:non-scaling-stroke}
.bar rect{fill:var(--dim)}
.bar.add rect{fill:var(--low)}
.bar.del rect{fill:var(--high)}
.bar rect.mid{fill:var(--fg)}
.tag.seen{color:var(--high);border-color:currentColor}
.tag.unseen{color:var(--dim)}
.step{margin:.6rem 0}
.plot{min-width:0}
.rows li,.tree li{overflow-wrap:anywhere}
.wide{overflow-x:auto}
.clocks{width:100%;min-width:44rem;height:auto}
.clocks text{fill:var(--dim);font-size:12px}
.clocks line{stroke:var(--fg);stroke-width:.6}
.clocks line.tick{stroke:var(--dim)}
.clocks text.mark{fill:var(--fg);font-size:10px}
.clocks .host{fill:var(--low)}
.clocks .wait{fill:var(--high);opacity:.55}
.clocks .device{fill:var(--link)}
.clocks .copy{fill:var(--medium)}
.key{font-size:.85rem;border-bottom:3px solid}
.key.host{border-color:var(--low)}
.key.wait{border-color:var(--high)}
.key.device{border-color:var(--link)}
.key.copy{border-color:var(--medium)}
.overview{border-bottom:1px solid var(--line);margin:.6rem 0;padding-bottom:.4rem}
.plots{display:grid;grid-template-columns:repeat(auto-fit,minmax(16rem,1fr));gap:.4rem 1.6rem}
.rows{list-style:none;padding:0;margin:.3rem 0}
.rows li{margin:.25rem 0;font-size:.87rem}
.share{display:block;width:100%;height:.55rem;background:var(--soft);border-radius:3px}
.share rect{fill:var(--dim)}
.share.high rect{fill:var(--high)}
.share.medium rect{fill:var(--medium)}
.share.low rect{fill:var(--low)}
.tree{margin:.5rem 0}
.tree ul{margin:.1rem 0;padding-left:1.2rem;overflow-wrap:anywhere}
footer{color:var(--dim);font-size:.85rem;margin-top:1.5rem}
kbd{border:1px solid var(--line);border-radius:3px;padding:0 .3em;font-size:.85em}
@media(max-width:40rem){body{padding:.6rem}form{position:static}label{flex:1 1 42%}
input,select{max-width:none;width:100%}article{padding:.6rem;scroll-margin-top:.5rem}.n{min-width:2.4em;padding-right:.6em}}
@media print{form,footer{display:none}article{break-inside:avoid}}
"""

# Reads only attributes and text of the page and never makes markup out of them.
SCRIPT = """
(() => {
  "use strict";
  const byId = (id) => document.getElementById(id);
  const form = byId("filters");
  if (!form) return;
  const list = byId("findings");
  const cards = [...list.querySelectorAll("article")];
  const worst = new Map(cards.map((card, rank) => [card, rank]));
  const texts = new Map(cards.map((card) => [card, card.textContent.toLowerCase()]));
  const names = ["rule", "impact", "confidence", "heat", "file", "fix", "observed"].filter((name) => byId(name));
  const visible = () => [...list.querySelectorAll("article")].filter((card) => !card.hidden);

  // Filters are kept in the address, so that a link to the page shows what was looked at.
  const keep = () => {
    const kept = new URLSearchParams();
    for (const name of [...names, "q", "order"]) {
      const value = byId(name).value;
      if (value && !(name === "order" && value === "worst")) kept.set(name, value);
    }
    const hash = kept.toString();
    history.replaceState(null, "", hash ? `#${hash}` : location.pathname + location.search);
  };

  const restore = () => {
    const hash = location.hash.slice(1);
    if (!hash.includes("=")) return false;
    for (const [name, value] of new URLSearchParams(hash)) {
      if ([...names, "q", "order"].includes(name) && byId(name)) byId(name).value = value;
    }
    return true;
  };

  const apply = () => {
    const words = byId("q").value.toLowerCase().split(/\\s+/).filter(Boolean);
    let count = 0;
    for (const card of cards) {
      const fits = names.every((name) => !byId(name).value || card.dataset[name] === byId(name).value)
        && words.every((word) => texts.get(card).includes(word));
      card.hidden = !fits;
      count += fits ? 1 : 0;
    }
    byId("shown").textContent = `${count} of ${cards.length} shown`;
    byId("none").hidden = count > 0;
  };

  const sort = () => {
    const keys = {place: (card) => Number(card.dataset.place), cost: (card) => -Number(card.dataset.cost)};
    const key = keys[byId("order").value] || ((card) => worst.get(card));
    list.prepend(...[...cards].sort((one, other) => key(one) - key(other)));
  };

  const move = (by) => {
    const shown = visible();
    if (!shown.length) return;
    const at = shown.findIndex((card) => card.contains(document.activeElement));
    const next = at < 0 ? (by > 0 ? 0 : shown.length - 1) : Math.min(Math.max(at + by, 0), shown.length - 1);
    shown[next].focus({preventScroll: true});
    shown[next].scrollIntoView({block: "start"});
  };

  const openTarget = () => {
    if (restore()) { sort(); apply(); return; }
    const target = location.hash && byId(decodeURIComponent(location.hash.slice(1)));
    if (!target) return;
    if (target.tagName === "DETAILS") target.open = true;
    target.hidden = false;
    target.scrollIntoView({block: "start"});
  };

  form.addEventListener("input", () => { sort(); apply(); keep(); });
  form.addEventListener("reset", () => setTimeout(() => { sort(); apply(); keep(); }));
  for (const link of document.querySelectorAll("a[data-set]")) {
    link.addEventListener("click", (event) => {
      event.preventDefault();
      const control = byId(link.dataset.set);
      control.value = control.value === link.dataset.value ? "" : link.dataset.value;
      sort(); apply(); keep();
      list.scrollIntoView({block: "start"});
    });
  }
  form.addEventListener("submit", (event) => event.preventDefault());
  window.addEventListener("hashchange", openTarget);
  document.addEventListener("keydown", (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    const typing = /^(INPUT|SELECT|TEXTAREA)$/.test(event.target.tagName);
    if (typing) {
      if (event.key === "Escape") event.target.blur();
      return;
    }
    const card = document.activeElement && document.activeElement.closest("article");
    if (event.key === "j") move(1);
    else if (event.key === "k") move(-1);
    else if (event.key === "/") byId("q").focus();
    else if (event.key === "c") form.reset();
    else if (event.key === "f" && card && card.querySelector("details.fix")) {
      const fix = card.querySelector("details.fix");
      fix.open = !fix.open;
    } else return;
    event.preventDefault();
  });
  apply();
  openTarget();
})();
"""

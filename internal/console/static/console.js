// The console's script. Every page works without it, except for the live view of mail.
'use strict';

// Live view: adds rows that the server has made to the table of mail.
for (const button of document.querySelectorAll('[data-live]')) {
  const most = 200; // rows in the table
  const rows = document.getElementById('rows');
  const status = document.getElementById('live-status');
  const label = button.textContent;
  let source = null, added = 0, skipped = 0, from = button.dataset.live;

  const say = () => {
    let text = 'Live: new mail appears here.';
    if (added) text = `Live: ${added} new ${added === 1 ? 'row' : 'rows'}.`;
    if (skipped) text += ` ${skipped} more came too fast to be shown: a search finds them.`;
    status.textContent = text;
  };
  const stop = (text) => {
    if (source) source.close();
    source = null;
    button.setAttribute('aria-pressed', 'false');
    button.textContent = added ? 'Continue the live view' : label;
    status.textContent = text;
  };
  const add = (html) => {
    const table = document.createElement('template');
    table.innerHTML = html;
    const fresh = [...table.content.querySelectorAll('tr')];
    const inUse = document.activeElement;
    for (const row of fresh.reverse()) {
      const old = document.getElementById(row.id);
      if (old && old.contains(inUse)) continue; // its link has the focus
      if (old) old.remove(); else added++;
      row.classList.add('fresh');
      rows.prepend(row);
    }
    while (rows.rows.length > most && !rows.lastElementChild.contains(inUse)) rows.lastElementChild.remove();
    rows.closest('.table').hidden = false;
    document.getElementById('empty')?.remove();
    say();
  };
  const start = () => {
    button.setAttribute('aria-pressed', 'true');
    button.textContent = 'Pause';
    source = new EventSource(from);
    source.onopen = say;
    source.addEventListener('rows', (e) => {
      const next = new URL(from, location.href); // where a pause continues
      next.searchParams.set('from', e.lastEventId);
      from = next.pathname + next.search;
      add(e.data);
    });
    source.addEventListener('skipped', (e) => { skipped += Number(e.data); });
    source.onerror = () => {
      if (source.readyState === EventSource.CLOSED) stop('The live view has ended: your session may be over, or too many live views are open. Reload the page.');
      else status.textContent = 'The connection is interrupted. The browser tries again.';
    };
  };
  button.hidden = false;
  button.addEventListener('click', () => source ? stop('The live view is paused.') : start());
}

// Parts of a page that load again by themselves. The keyboard's focus and what was opened stay.
for (const page of document.querySelectorAll('[data-reload]')) {
  const focusable = 'a[href], button, input, select, summary, [tabindex]';
  const reload = async () => {
    if (document.hidden) return;
    let next;
    try {
      const answer = await fetch(location.href, {redirect: 'error'});
      if (!answer.ok) return;
      next = new DOMParser().parseFromString(await answer.text(), 'text/html').querySelector('[data-reload]');
    } catch {
      return; // the gate restarts, or the session is over: the next try, or the next click, tells
    }
    if (!next) return;
    const at = [...page.querySelectorAll(focusable)].indexOf(document.activeElement);
    const open = new Set([...page.querySelectorAll('details[open][id]')].map((d) => d.id));
    page.replaceChildren(...next.childNodes);
    for (const d of page.querySelectorAll('details[id]')) d.open = open.has(d.id);
    if (at >= 0) page.querySelectorAll(focusable)[at]?.focus({preventScroll: true});
  };
  setInterval(reload, 1000 * Number(page.dataset.reload));
}

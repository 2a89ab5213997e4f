/** The steps of an operator on the console before a large history: where each begins, what is done, and what is seen then. */

/** They run in the page, as sources: `act` does it as the person would, `seen` says that its result is on the page. */
export interface Step {
  readonly name: string;
  /** Address from which it begins. */
  readonly from: string;
  /** Comes before, and is not measured. */
  readonly prepare?: string;
  readonly act: string;
  readonly seen: string;
}

const daysAgo = (days: number): string => new Date(Date.now() - days * 86_400_000).toISOString().slice(0, 10);

const LIST = '/transfers';

/** Other rows than those that were there, or the word that there are none. */
const NEW_ROWS = `rows() !== before && (rows() !== null || isEmpty())`;

const click = (selector: string, text = ''): string =>
  `find(${JSON.stringify(selector)}, ${JSON.stringify(text)}).click()`;
const go = (address: string): string => `goTo(${JSON.stringify(address)})`;
const page = (title: string, more = 'true'): string =>
  `title() === ${JSON.stringify(title)} && !isLoading() && ${more}`;

const filtered = (filter: string): Step => ({
  ...{ name: `filter ${filter}`, from: LIST, act: go(`${LIST}?${filter}`), seen: NEW_ROWS },
});

const search = (text: string): Step => ({
  ...{ name: `search ${text}`, from: LIST, act: `find('#search').form.requestSubmit()`, seen: NEW_ROWS },
  prepare: `{ const field = find('#search'); field.value = ${JSON.stringify(text)};
    field.dispatchEvent(new Event('input', { bubbles: true })); }`,
});

/** Older or younger: the buttons of the pager, in this order. */
const pager = (which: 'first' | 'last'): string => click(`nav.spread button:${which}-of-type`);

export const STEPS: readonly Step[] = [
  { name: 'open Transfers', from: '/', act: click('.rail a[href="/transfers"]'), seen: NEW_ROWS },
  { name: 'next page', from: LIST, act: pager('last'), seen: NEW_ROWS },
  { name: 'page before', from: `${LIST}?page=1`, act: pager('first'), seen: NEW_ROWS },
  // The last page that is asked for by its number, and the first by the key of the one before it.
  { name: 'page 400', from: LIST, act: go(`${LIST}?page=399`), seen: NEW_ROWS },
  { name: 'page 401, by key', from: `${LIST}?page=399`, act: pager('last'), seen: NEW_ROWS },
  { name: 'oldest first', from: LIST, act: click('main button', 'Oldest first'), seen: NEW_ROWS },
  {
    name: 'newest first',
    from: `${LIST}?sort=startTime%2Casc`,
    act: click('main button', 'Newest first'),
    seen: NEW_ROWS,
  },
  ...[
    ...[
      'status=FAILED',
      'status=PENDING',
      'status=CANCELLED',
      'direction=SEND',
      'peer=PARTNER0000',
      'peer=PARTNER0250',
    ],
    ...['virtualFile=FILE0', 'virtualFile=FILE59', 'type=MESSAGE', 'diagnostic=2-205', 'diagnostic=3-304'],
    ...['restartable=true', 'node=pod-1', `from=${daysAgo(30)}`, `from=${daysAgo(60)}&to=${daysAgo(59)}`],
    'peer=PARTNER0000&status=FAILED&virtualFile=FILE0',
  ].map(filtered),
  {
    ...{ name: 'take a filter away', from: `${LIST}?status=FAILED&peer=PARTNER0000`, act: click('.chip button') },
    seen: NEW_ROWS,
  },
  ...['invoice', 'invoice_777', 'nowhere'].map(search),
  {
    ...{ name: 'open a record', from: LIST, act: click('tbody a') },
    seen: `title() !== 'Transfers' && document.querySelector('main dl.facts') !== null && !isLoading()`,
  },
  { name: 'back to the list', from: '', act: 'history.back()', seen: NEW_ROWS },
  { name: 'export begins', from: LIST, act: click('main button', 'Export CSV'), seen: 'exports > 0' },
  { name: 'Now', from: LIST, act: click('.rail a[href="/"]'), seen: page('Now') },
  {
    ...{ name: 'Metrics', from: LIST, act: click('.rail a[href="/figures"]') },
    seen: page('Metrics', `document.querySelector('main canvas') !== null`),
  },
  {
    ...{ name: 'Metrics of 30 days', from: '/figures', act: click('main a', '30 days') },
    seen: page('Metrics', `location.search === '?range=month' && document.querySelector('main canvas') !== null`),
  },
];

/**
 * The page needs this for it. `timed` resolves with the milliseconds from the act to the picture after the one in which its
 * result stands; `reach` goes somewhere without a measurement.
 */
export const IN_PAGE = `
  let before = null;
  let exports = 0;
  const find = (selector, text = '') => {
    const found = [...document.querySelectorAll(selector)].find((one) => one.textContent.includes(text));
    if (found === undefined) throw new Error('not on the page: ' + selector + ' ' + text);
    return found;
  };
  const title = () => document.querySelector('h1')?.textContent;
  const rows = () => document.querySelector('main tbody');
  const isLoading = () => document.querySelector('main .empty[role=status]') !== null;
  const isEmpty = () => document.querySelector('main .card.flush > .empty:not([role])') !== null;
  const goTo = (address) => { history.pushState(null, '', address); dispatchEvent(new PopStateEvent('popstate')); };

  // The beginning of an export counts; all of it would be read for minutes.
  const fetched = window.fetch;
  window.fetch = async (asked, how) => {
    const answer = await fetched(asked, how);
    if (!String(asked?.url ?? asked).includes('/export')) return answer;
    exports += answer.ok ? 1 : 0;
    document.body.dataset.exports = exports;
    await answer.body?.cancel();
    return new Response('');
  };

  const until = (seen) => new Promise((resolve, reject) => {
    const given = setTimeout(() => reject(new Error('not seen within 60 s at ' + location.href + ': ' + seen)), 60_000);
    const look = () => {
      if (!seen()) return;
      clearTimeout(given);
      watch.disconnect();
      const after = new MessageChannel();
      after.port1.onmessage = () => resolve();
      requestAnimationFrame(() => after.port2.postMessage(0));
    };
    const watch = new MutationObserver(look);
    watch.observe(document, { subtree: true, childList: true, characterData: true, attributes: true });
    look();
  });

  window.bench = {
    reach: async (address) => {
      const shown = rows();
      if (location.pathname + location.search === address) return;
      goTo(address);
      const isList = address.startsWith('/transfers');
      await until(() => !isLoading() && title() !== undefined && (!isList || (rows() !== shown && rows() !== null)));
    },
    timed: async (act, seen) => {
      before = rows();
      exports = 0;
      const began = performance.now();
      act();
      await until(seen);
      return performance.now() - began;
    },
  };
`;

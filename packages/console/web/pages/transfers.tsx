import { useLocation } from 'preact-iso';
import { useEffect, useState } from 'preact/hooks';

import { useAnswer } from '../api/answer.ts';
import { download } from '../api/download.ts';
import { app } from '../api/session.ts';
import { exportPath, FILTERS, listTransfers, nameOf } from '../api/transfers.ts';
import type { Filters, Page as PageOfTransfers, Transfer } from '../api/transfers.ts';
import { useAction } from '../parts/action.tsx';
import { FailureNote } from '../parts/failure-note.tsx';
import { useTransferEvents } from '../parts/live-transfers.ts';
import { Empty, Loading, Page } from '../parts/page.tsx';
import { Pager, usePaging } from '../parts/pager.tsx';
import { usePeers } from '../parts/peers.ts';
import { DirectionWord, StatusPill } from '../parts/pills.tsx';
import { besideLink } from '../parts/row-link.ts';
import { FilterChips, FilterForm } from '../parts/transfer-filters.tsx';
import { bytes, dateTime, number, span, time } from '../texts/format.ts';
import { texts } from '../texts/index.ts';
import { transfersWords } from '../texts/transfers.ts';

const SIZE = 25;

const filtersOf = (query: Readonly<Record<string, string | undefined>>): Filters =>
  Object.fromEntries(
    FILTERS.map((name) => [name, query[name]] as const).filter(([, value]) => value !== undefined && value !== ''),
  );

const addressOf = (filters: Filters, page: number, sort: string | undefined): string => {
  const query = new URLSearchParams(Object.entries(filters));
  if (page > 0) query.set('page', String(page));
  if (sort !== undefined) query.set('sort', sort);
  const text = query.toString();
  return text === '' ? '/transfers' : `/transfers?${text}`;
};

const Row = ({ one }: { readonly one: Transfer }) => {
  const { route } = useLocation();
  const transfers = transfersWords.value;
  const name = nameOf(one);
  const address = `/transfers/${one.id}`;
  return (
    <tr class="link" onClick={besideLink(() => route(address))}>
      <td>
        <StatusPill status={one.status} />
      </td>
      <td class="narrow-off">
        <DirectionWord direction={one.direction} />
      </td>
      <td class="name">
        <a href={address} aria-label={transfers.open(name)}>
          {name}
        </a>
        {one.label !== null && one.label !== name && <div class="quiet">{one.label}</div>}
        <div class="quiet narrow-only">
          {one.peer}, {time(one.since)}
        </div>
        {one.diagnostic !== null && one.diagnostic !== '0-000' && one.reason !== null && (
          <div class="quiet clamp">{one.reason}</div>
        )}
      </td>
      <td class="narrow-off">{one.peer}</td>
      <td class="narrow-off">{one.virtualFile}</td>
      <td class="number">{one.size === null ? bytes(one.bytes) : bytes(one.size)}</td>
      <td class="narrow-off">
        <time dateTime={one.since} title={dateTime(one.since)}>
          {time(one.since)}
        </time>
      </td>
      <td class="number narrow-off">{one.duration === null ? '' : span(one.duration)}</td>
      <td class="narrow-off">{one.diagnostic === '0-000' ? '' : one.diagnostic}</td>
    </tr>
  );
};

interface ListProps {
  readonly page: PageOfTransfers;
  readonly isFiltered: boolean;
}

const List = ({ page, isFiltered }: ListProps) => {
  const { columns, none, noneServer, noneClient, noMatch } = transfersWords.value;
  if (page.content.length === 0) {
    return isFiltered ? (
      <Empty title={noMatch} />
    ) : (
      <Empty title={none}>
        <span>{app.value === 'server' ? noneServer : noneClient}</span>
      </Empty>
    );
  }
  return (
    <div class="frame">
      <table>
        <thead>
          <tr>
            <th scope="col">{columns.status}</th>
            <th scope="col" class="narrow-off">
              {columns.direction}
            </th>
            <th scope="col">{columns.file}</th>
            <th scope="col" class="narrow-off">
              {columns.peer[app.value]}
            </th>
            <th scope="col" class="narrow-off">
              {columns.virtualFile}
            </th>
            <th scope="col" class="number">
              {columns.size}
            </th>
            <th scope="col" class="narrow-off">
              {columns.since}
            </th>
            <th scope="col" class="number narrow-off">
              {columns.duration}
            </th>
            <th scope="col" class="narrow-off">
              {columns.diagnostic}
            </th>
          </tr>
        </thead>
        <tbody>
          {page.content.map((one) => (
            <Row key={one.id} one={one} />
          ))}
        </tbody>
      </table>
    </div>
  );
};

/** The page with what events have told since it was answered. */
const withNews = (page: PageOfTransfers, news: ReadonlyMap<string, Transfer>): PageOfTransfers =>
  news.size === 0 ? page : { ...page, content: page.content.map((one) => news.get(one.id) ?? one) };

/** The history: filters as chips that live in the address, pages over any number of records, changes as they happen. */
export const TransfersPage = () => {
  const { query, route } = useLocation();
  const filters = filtersOf(query);
  const sort = query['sort'] === 'startTime,asc' ? 'startTime,asc' : undefined;
  const peers = usePeers();
  const exported = useAction();
  const { shell } = texts.value;
  const transfers = transfersWords.value;

  const question = (page: number): string => addressOf(filters, page, sort);
  const { page: number0, ask: asked, learn } = usePaging(query['page'], SIZE, question);
  const isLost = asked === undefined;
  const paging = { size: SIZE, ...(sort === undefined ? {} : { sort }), ...(asked ?? { page: 0 }) };
  const key = question(number0);
  const { value, failure, ask } = useAnswer(key, (signal) => listTransfers(filters, paging, signal));
  if (value !== undefined) learn(value.next);

  const [news, setNews] = useState<ReadonlyMap<string, Transfer>>(new Map());
  const [fresh, setFresh] = useState<ReadonlySet<string>>(new Set());
  const forget = (): void => {
    setNews(new Map());
    setFresh(new Set());
  };
  useEffect(forget, [key, value]);
  useEffect(() => {
    if (isLost) route(question(0), true);
  }, [isLost]);
  const isOpen = useTransferEvents('/api/v1/transfers/events', {
    transfer: (one) => {
      if (value?.content.some(({ id }) => id === one.id) === true) setNews((last) => new Map(last).set(one.id, one));
      else if (number0 === 0 && sort === undefined && Object.keys(filters).length === 0) {
        setFresh((last) => (last.size >= 999 ? last : new Set(last).add(one.id)));
      }
    },
    reset: ask,
  });

  const change = (chosen: Filters): void => route(addressOf(chosen, 0, sort));
  return (
    <Page
      title={transfers.title}
      actions={
        <>
          <span class={isOpen ? 'live on' : 'live'}>{isOpen ? shell.live : shell.notLive}</span>
          <button
            type="button"
            class="button"
            onClick={() => route(addressOf(filters, 0, sort === undefined ? 'startTime,asc' : undefined))}
          >
            {sort === undefined ? transfers.oldestFirst : transfers.newestFirst}
          </button>
          <button
            type="button"
            class="button"
            disabled={exported.isRunning}
            onClick={() => exported.run(() => download(exportPath(filters, 'csv'), 'transfers.csv'))}
          >
            {transfers.exportAs} CSV
          </button>
          <FilterForm key={key} filters={filters} peers={peers} change={change} />
        </>
      }
    >
      <FilterChips filters={filters} peers={peers} change={change} />
      <FailureNote failure={exported.failure} />
      <FailureNote failure={failure} again={ask} isStale={value !== undefined} />
      {fresh.size > 0 && (
        <button type="button" class="button" onClick={ask}>
          {transfers.fresh(number(fresh.size))}
        </button>
      )}
      <section class="card flush" aria-label={transfers.title}>
        {value === undefined ? (
          failure === undefined && <Loading />
        ) : (
          <List page={withNews(value, news)} isFiltered={Object.keys(filters).length > 0} />
        )}
      </section>
      {value !== undefined && (
        <Pager
          page={number0}
          found={transfers.found(number(value.total), value.totalIsExact)}
          hasNext={value.next !== null}
          back={sort === undefined ? transfers.newer : transfers.older}
          forth={sort === undefined ? transfers.older : transfers.newer}
          go={(page) => route(question(page))}
        />
      )}
    </Page>
  );
};

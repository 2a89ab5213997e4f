import type { ComponentChildren } from 'preact';
import { useLocation } from 'preact-iso';
import { useEffect, useState } from 'preact/hooks';

import { useAnswer } from '../api/answer.ts';
import { PAGE_SIZE } from '../api/configuration.ts';
import type { Resource } from '../api/configuration.ts';
import { may } from '../api/session.ts';
import { words as configuration } from '../texts/configuration.ts';
import { colon, number } from '../texts/format.ts';
import { texts } from '../texts/index.ts';
import '../style/configuration.css';
import { FailureNote } from './failure-note.tsx';
import { Empty, Loading, Page } from './page.tsx';
import { besideLink } from './row-link.ts';

export interface Column<Row> {
  readonly title: string;
  readonly cell: (row: Row) => ComponentChildren;
  /** Left out on a narrow screen. */
  readonly isExtra?: boolean;
}

interface Props<Row> {
  readonly path: string;
  readonly title: string;
  readonly resource: Resource<Row>;
  readonly idOf: (row: Row) => string;
  readonly nameOf: (row: Row) => string;
  readonly columns: readonly Column<Row>[];
  /** The one filter beside the words: its values, each with its word. */
  readonly filter: { readonly label: string; readonly values: readonly (readonly [value: string, word: string])[] };
  readonly none: string;
  readonly hint: string;
  /** For an admin: the ways to a new one, the best first. */
  readonly ways: readonly { readonly path: string; readonly word: string }[];
  /** Milliseconds after which it is asked again. */
  readonly every?: number;
}

/** The address of one of them. */
export const addressOf = (path: string, id: string): string => `${path}/${encodeURIComponent(id)}`;

const Ways = ({ of }: { readonly of: Props<unknown>['ways'] }) =>
  may('admin') ? (
    <>
      {of.map((way, index) => (
        <a key={way.path} class={index === 0 ? 'button main' : 'button'} href={way.path}>
          {way.word}
        </a>
      ))}
    </>
  ) : null;

/** A list of what is configured: found by words, a page at a time, each row leading to its own page. */
export const Listing = <Row,>(props: Props<Row>) => {
  const { path, title, resource, idOf, nameOf, columns, filter, none, hint, ways, every = 30_000 } = props;
  const { query, route } = useLocation();
  const { list, common } = configuration.value;
  const wanted = Number(query['page'] ?? 0);
  const page = Number.isSafeInteger(wanted) && wanted > 0 ? wanted : 0;
  const asked = { q: query['q'] ?? '', filter: query['filter'] ?? '', page };
  const { value, failure, ask } = useAnswer(
    JSON.stringify([path, asked]),
    (signal) => resource.list(asked, signal),
    every,
  );
  const go = (change: Partial<typeof asked>): void => {
    const next = { ...asked, page: 0, ...change };
    const said = Object.entries(next).filter(([, one]) => one !== '' && one !== 0);
    const search = new URLSearchParams(said.map(([name, one]) => [name, String(one)])).toString();
    route(search === '' ? path : `${path}?${search}`);
  };
  const [typed, setTyped] = useState(asked.q);
  useEffect(() => setTyped(asked.q), [asked.q]);
  const isFiltered = asked.q !== '' || asked.filter !== '';
  const isEmpty = value?.content.length === 0;
  const last = Math.max(Math.ceil((value?.total ?? 0) / PAGE_SIZE) - 1, 0);
  return (
    <Page title={title} actions={<Ways of={ways} />}>
      {!(isEmpty && !isFiltered) && (
        <form
          class="row"
          role="search"
          aria-label={list.find}
          onSubmit={(event) => {
            event.preventDefault();
            go({ q: typed.trim() });
          }}
        >
          <input
            class="find"
            type="search"
            value={typed}
            maxLength={100}
            placeholder={list.find}
            aria-label={list.find}
            onInput={(event) => setTyped(event.currentTarget.value)}
          />
          <select
            aria-label={filter.label}
            value={asked.filter}
            onChange={(event) => go({ filter: event.currentTarget.value })}
          >
            <option value="">
              {filter.label}
              {colon.value} {list.any}
            </option>
            {filter.values.map(([one, word]) => (
              <option key={one} value={one} selected={asked.filter === one}>
                {word}
              </option>
            ))}
          </select>
        </form>
      )}
      <FailureNote failure={failure} again={ask} isStale={value !== undefined} />
      <section class="card flush" aria-label={title}>
        {value === undefined && failure === undefined && <Loading />}
        {isEmpty &&
          (isFiltered ? (
            <Empty title={list.noMatch}>
              <a href={path}>{list.showAll}</a>
            </Empty>
          ) : (
            <Empty title={none}>
              <span>{hint}</span>
              <span class="row">
                <Ways of={ways} />
              </span>
            </Empty>
          ))}
        {value !== undefined && !isEmpty && (
          <div class="frame">
            <table>
              <thead>
                <tr>
                  <th scope="col">{common.identifier}</th>
                  {columns.map((one) => (
                    <th key={one.title} scope="col" class={one.isExtra ? 'narrow-off' : ''}>
                      {one.title}
                    </th>
                  ))}
                </tr>
              </thead>
              <tbody>
                {value.content.map((row) => (
                  <tr key={idOf(row)} class="link" onClick={besideLink(() => route(addressOf(path, idOf(row))))}>
                    <td class="name">
                      <a href={addressOf(path, idOf(row))}>{nameOf(row)}</a>
                    </td>
                    {columns.map((one) => (
                      <td key={one.title} class={one.isExtra ? 'narrow-off' : ''}>
                        {one.cell(row)}
                      </td>
                    ))}
                  </tr>
                ))}
              </tbody>
            </table>
          </div>
        )}
      </section>
      {value !== undefined && value.total > 0 && (
        <div class="row spread">
          <span class="quiet">{list.count(number(value.total))}</span>
          {last > 0 && (
            <span class="row">
              <button type="button" class="button" disabled={page === 0} onClick={() => go({ page: page - 1 })}>
                {list.previous}
              </button>
              <span>{texts.value.common.page(number(page + 1))}</span>
              <button type="button" class="button" disabled={page >= last} onClick={() => go({ page: page + 1 })}>
                {list.next}
              </button>
            </span>
          )}
        </div>
      )}
    </Page>
  );
};

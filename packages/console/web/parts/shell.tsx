import type { ComponentChildren } from 'preact';
import { useLocation } from 'preact-iso';
import { useEffect, useState } from 'preact/hooks';

import { app, isBlocked, login, logOut } from '../api/session.ts';
import { choose, language, LANGUAGES, texts } from '../texts/index.ts';
import type { Language } from '../texts/index.ts';
import { Keys } from './keys.tsx';
import { leave, Leaving } from './leaving.tsx';
import { menu } from './menu.ts';
import { chooseTheme, theme, THEMES } from './theme.ts';
import type { Theme } from './theme.ts';

const Preferences = () => {
  const { shell } = texts.value;
  return (
    <>
      <label class="field">
        <span>{shell.language}</span>
        <select value={language.value} onChange={(event) => void choose(event.currentTarget.value as Language)}>
          {Object.entries(LANGUAGES).map(([tag, words]) => (
            <option key={tag} value={tag} lang={tag}>
              {words.language}
            </option>
          ))}
        </select>
      </label>
      <label class="field">
        <span>{shell.theme}</span>
        <select value={theme.value} onChange={(event) => chooseTheme(event.currentTarget.value as Theme)}>
          {THEMES.map((one) => (
            <option key={one} value={one}>
              {shell.themes[one]}
            </option>
          ))}
        </select>
      </label>
    </>
  );
};

const Search = () => {
  const { path, query, route } = useLocation();
  const { shell } = texts.value;
  const [asked, setAsked] = useState('');
  const current = path === '/transfers' ? (query['q'] ?? '') : '';
  useEffect(() => setAsked(current), [current]);
  return (
    <form
      role="search"
      onSubmit={(event) => {
        event.preventDefault();
        const to = asked === '' ? '/transfers' : `/transfers?${new URLSearchParams({ q: asked }).toString()}`;
        leave(() => route(to));
      }}
    >
      <input
        id="search"
        type="search"
        value={asked}
        maxLength={100}
        placeholder={shell.search}
        aria-label={shell.search}
        onInput={(event) => setAsked(event.currentTarget.value)}
      />
    </form>
  );
};

const isCurrent = (path: string, item: string): boolean =>
  item === '/' ? path === '/' : path === item || path.startsWith(`${item}/`);

/** The frame around every page: the rail of pages, the search, who is logged in. */
export const Shell = ({ children }: { readonly children: ComponentChildren }) => {
  const { path } = useLocation();
  const [isOpen, setOpen] = useState(false);
  useEffect(() => setOpen(false), [path]);
  const { product, apps, pages, shell } = texts.value;
  const who = login.value;
  return (
    <div class="shell">
      <a class="skip" href="#content">
        {shell.skip}
      </a>
      <aside class={isOpen ? 'rail open' : 'rail'} aria-label={shell.menu}>
        <div class="brand">
          <img src="/icon.svg" alt="" />
          <span>
            {product}
            <small>{isBlocked.value ? '' : apps[app.value]}</small>
          </span>
        </div>
        <nav aria-label={shell.pages}>
          {menu.value.map((item) => (
            <a key={item.path} href={item.path} aria-current={isCurrent(path, item.path) ? 'page' : undefined}>
              {pages[item.name]}
            </a>
          ))}
        </nav>
        <div class="foot">
          <Preferences />
          {typeof who?.peerUrl === 'string' && <a href={who.peerUrl}>{shell.otherApp}</a>}
          <a href="/docs" target="_blank" rel="noreferrer">
            {shell.documentation}
          </a>
          <span class="quiet">{who?.version}</span>
        </div>
      </aside>
      <header class="bar">
        <button type="button" class="button menu" aria-expanded={isOpen} onClick={() => setOpen(!isOpen)}>
          {shell.menu}
        </button>
        {!isBlocked.value && <Search />}
        <div class="end">
          <span class="who">
            {who?.username}
            <small class="quiet">{who === undefined || isBlocked.value ? '' : shell.roles[who.role]}</small>
          </span>
          <button type="button" class="button" onClick={() => leave(() => logOut())}>
            {shell.logOut}
          </button>
        </div>
      </header>
      <main id="content" tabIndex={-1}>
        {children}
      </main>
      <Keys />
      <Leaving />
    </div>
  );
};

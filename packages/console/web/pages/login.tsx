import { useEffect, useState } from 'preact/hooks';

import { ended, logIn } from '../api/session.ts';
import { FailureNote } from '../parts/failure-note.tsx';
import { useAction } from '../parts/action.tsx';
import { texts } from '../texts/index.ts';

/** The only page without a login. */
export const LoginPage = () => {
  const [username, setUsername] = useState('');
  const [password, setPassword] = useState('');
  const { run, isRunning, failure } = useAction();
  const { login, product, common } = texts.value;
  useEffect(() => {
    document.title = `${login.title} · ${product}`;
  }, [login, product]);
  const why = ended.value === 'refused' ? login.again : ended.value === 'loggedOut' ? login.loggedOut : undefined;
  return (
    <main class="door">
      <form
        class="card"
        onSubmit={(event) => {
          event.preventDefault();
          run(() => logIn(username, password));
        }}
      >
        <div class="brand">
          <img src="/icon.svg" alt="" />
          <h1>{product}</h1>
        </div>
        {failure?.status === 401 ? (
          <p class="note bad" role="alert">
            {login.refused}
          </p>
        ) : (
          <FailureNote failure={failure} />
        )}
        {failure === undefined && why !== undefined && <p class="note">{why}</p>}
        <label class="field">
          <span>{login.username}</span>
          <input
            name="username"
            autocomplete="username"
            autocapitalize="none"
            required
            autofocus
            value={username}
            onInput={(event) => setUsername(event.currentTarget.value)}
          />
        </label>
        <label class="field">
          <span>{login.password}</span>
          <input
            name="password"
            type="password"
            autocomplete="current-password"
            required
            value={password}
            onInput={(event) => setPassword(event.currentTarget.value)}
          />
        </label>
        <button class="button main" disabled={isRunning}>
          {isRunning ? login.wait : login.submit}
        </button>
        <p class="quiet" title={common.details}>
          {login.nowhere}
        </p>
      </form>
    </main>
  );
};

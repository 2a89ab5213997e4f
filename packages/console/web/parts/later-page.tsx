import type { FunctionComponent } from 'preact';
import { lazy } from 'preact-iso';

import { texts } from '../texts/index.ts';
import { Page } from './page.tsx';

/** The files of the page are gone from the service, which was updated meanwhile, or it does not answer. */
const NotLoaded = () => {
  const { failure } = texts.value;
  return (
    <Page title={failure.notLoaded}>
      <p>{failure.notLoadedHint}</p>
      <p>
        <button type="button" class="button main" onClick={() => location.reload()}>
          {failure.reload}
        </button>
      </p>
    </Page>
  );
};

/** A page whose files are fetched when somebody goes there, so that the first one comes fast. */
export const laterPage = (load: () => Promise<FunctionComponent>): FunctionComponent =>
  lazy(() => load().catch(() => NotLoaded));

/**
 * The browser's half of the console.
 *
 * `api/` speaks to the REST interface of the app that served the page: the login, typed requests, server-sent events; the types come
 * from the document of the interface (`api/generated`, made by the build). `texts/` has every word in each language, `parts/` what
 * several pages show, `pages/` one file a page. A page asks with `useAnswer`, which shows what it has while it asks again, and never
 * waits without an end. Nothing of the login is kept anywhere but in memory: a reload asks for it again.
 */
import { render } from 'preact';

import { App } from './app.tsx';
import { heedBack } from './parts/leaving.tsx';
import './style/base.css';
import './style/parts.css';

heedBack();
const home = document.getElementById('app');
if (home !== null) render(<App />, home);

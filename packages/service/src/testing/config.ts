import type { AppName, Config } from '../config/keys.js';
import { loadConfig } from '../config/load.js';

/** The configuration of `app` with everything at its default but `overrides`. `data.directory` is required: tests own theirs. */
export const testConfig = <A extends AppName>(
  app: A,
  overrides: Partial<Config<A>> & { readonly 'data.directory': string },
): Config<A> => {
  const defaults = loadConfig({ app, env: {}, argv: [`--data.directory=${overrides['data.directory']}`], cwd: '/' });
  return Object.freeze({ ...defaults, ...overrides });
};

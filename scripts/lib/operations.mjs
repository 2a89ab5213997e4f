/** The operations that the REST interfaces of both apps declare, read without a database or a node behind them. */

/** Stands for every part of a node: routes only keep it while they are declared. */
const nothing = new Proxy(() => nothing, {
  get: (_target, name) => (typeof name === 'symbol' || name === 'then' ? undefined : nothing),
  apply: () => nothing,
});

/** Parts that every app hands on by name. */
const COMMON = ['info', 'logger', 'health', 'metrics', 'events', 'database', 'periodic', 'license', 'audit', 'cluster'];

/** @returns {Promise<Record<'server' | 'client', readonly object[]>>} the operations of each app */
export const declaredOperations = async () => {
  const { loadConfig, operationsOfApp } = await import('@pesit-node/service');
  const common = Object.fromEntries(COMMON.map((name) => [name, nothing]));
  const made = {};
  for (const app of ['server', 'client']) {
    const { createApp } = await import(`../../apps/${app}/dist/app.js`);
    const config = loadConfig({ app, env: {}, argv: [], cwd: '/' });
    const parts = new Proxy({ ...common, config }, { get: (target, name) => target[name] ?? nothing });
    made[app] = operationsOfApp(createApp(parts));
  }
  return made;
};

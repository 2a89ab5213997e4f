/**
 * Preloaded into a service (`node --import`): kills it with SIGKILL at one step of a delivery, named by KILL_AT as
 * `before:<step>` or `after:<step>`. Not armed until a file begins, so that the service can start.
 */
import { createRequire, syncBuiltinESMExports } from 'node:module';

const require = createRequire(import.meta.url);
const files = require('node:fs/promises');
const { Client } = require('pg');

const [when, step] = (process.env.KILL_AT ?? '').split(':');
let armed = false;

const die = (at, name) => {
  if (armed && at === when && name === step) process.kill(process.pid, 'SIGKILL');
};

const around = (name, work) => {
  die('before', name);
  const done = work();
  return armed && name === step
    ? done.then((value) => {
        die('after', name);
        return value;
      })
    : done;
};

const { link, rename, unlink } = files;
const isMark = (path) => /\.(linked|moved)$/.test(String(path));
files.link = (from, to) => around(isMark(to) ? 'mark' : 'link', () => link(from, to));
files.rename = (from, to) => around('rename', () => rename(from, to));
files.unlink = (path) =>
  around(isMark(path) ? 'settle' : /\.part$/.test(String(path)) ? 'unlink' : '', () => unlink(path));
syncBuiltinESMExports();

const STATEMENTS = { intent: /set .*"delivering" = /, complete: /status = 'COMPLETED', end_time/ };

const { query } = Client.prototype;
Client.prototype.query = function (statement, ...rest) {
  const text = statement?.text ?? '';
  if (/^insert into "transfers"/.test(text)) armed = true;
  const name = Object.keys(STATEMENTS).find((key) => STATEMENTS[key].test(text));
  if (name === undefined) return query.call(this, statement, ...rest);
  die('before', name);
  const callback = rest.at(-1);
  if (typeof callback !== 'function') return query.call(this, statement, ...rest);
  const told = (...answer) => {
    die('after', name);
    callback(...answer);
  };
  return query.call(this, statement, ...rest.slice(0, -1), told);
};

/**
 * Preloaded into a service (`node --import`): kills it with SIGKILL at one step of a transfer, named by KILL_AT as
 * `before:<step>` or `after:<step>`. Not armed until the transfer of KILL_FILE (PI 12) is taken.
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

const isNote = (path) => String(path).endsWith('.delivery');

const { link, open, rm, unlink } = files;
const isMark = (path) => /\.(linked|moved)$/.test(String(path));
files.link = (from, to) => around(isMark(to) ? 'mark' : 'link', () => link(from, to));
files.unlink = (path) =>
  around(isMark(path) ? 'settle' : String(path).endsWith('.part') ? 'unlink' : '', () => unlink(path));
files.open = (path, ...given) => around(isNote(path) ? 'note' : '', () => open(path, ...given));
files.rm = (path, ...given) => around(isNote(path) ? 'forget' : '', () => rm(path, ...given));
syncBuiltinESMExports();

const STATEMENTS = {
  take: /skip locked/,
  pacings: /set pacings = /,
  end: /update transfers set\s+status = case when cancel_requested and/,
};

const { query } = Client.prototype;
Client.prototype.query = function (statement, ...rest) {
  const text = statement?.text ?? '';
  const name = Object.keys(STATEMENTS).find((key) => STATEMENTS[key].test(text));
  const callback = rest.at(-1);
  if (name === undefined || typeof callback !== 'function') return query.call(this, statement, ...rest);
  die('before', name);
  const told = (error, result) => {
    if (name === 'take' && result?.rows?.[0]?.virtual_file === process.env.KILL_FILE) armed = true;
    die('after', name);
    callback(error, result);
  };
  return query.call(this, statement, ...rest.slice(0, -1), told);
};

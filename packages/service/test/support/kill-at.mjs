/**
 * Preloaded into a service (`node --import`): kills it with SIGKILL at one step of a transfer, named by KILL_AT as
 * `before:<step>` or `after:<step>`; with KILL_SIGNAL=SIGSTOP it stands still there, once, until SIGCONT. Not armed until a transfer begins, so that the service can start: the first row in
 * `transfers`, or, where KILL_FILE names a virtual file (PI 12), the taking of its transfer from the queue.
 */
import { createRequire, syncBuiltinESMExports } from 'node:module';

const require = createRequire(import.meta.url);
const files = require('node:fs/promises');
const fs = require('node:fs');
const { Client } = require('pg');

const [when, step] = (process.env.KILL_AT ?? '').split(':');
const awaited = process.env.KILL_FILE ?? '';
const signal = process.env.KILL_SIGNAL ?? 'SIGKILL';
let armed = false;
let isOver = false;

const die = (at, name) => {
  if (isOver || !armed || at !== when || name !== step) return;
  isOver = true;
  process.kill(process.pid, signal);
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

const isMark = (path) => /\.(linked|moved)$/.test(String(path));
const isNote = (path) => String(path).endsWith('.delivery');
const isPart = (path) => String(path).endsWith('.part');

/** A step by a synchronous call. */
const aroundAtOnce = (name, work) => {
  die('before', name);
  const value = work();
  die('after', name);
  return value;
};

const linking = (to) => (isMark(to) ? 'mark' : 'link');
const unlinking = (path) => (isMark(path) ? 'settle' : isPart(path) ? 'unlink' : '');
const opening = (path) => (isNote(path) ? 'note' : '');

const { link, rm, unlink } = files;
files.link = (from, to) => around(linking(to), () => link(from, to));
files.unlink = (path) => around(unlinking(path), () => unlink(path));
files.rm = (path, ...given) => around(isNote(path) ? 'forget' : '', () => rm(path, ...given));

const { linkSync, open, openSync, unlinkSync } = fs;
fs.linkSync = (from, to) => aroundAtOnce(linking(to), () => linkSync(from, to));
fs.unlinkSync = (path) => aroundAtOnce(unlinking(path), () => unlinkSync(path));
fs.openSync = (path, ...given) => aroundAtOnce(opening(path), () => openSync(path, ...given));
fs.open = (path, ...given) => {
  die('before', opening(path));
  const answer = given.at(-1);
  open(path, ...given.slice(0, -1), (...answered) => {
    die('after', opening(path));
    answer(...answered);
  });
};
syncBuiltinESMExports();

/** The statements by which each app writes down how far a transfer is. */
const STATEMENTS = {
  intent: /set .*"delivering" = /,
  complete: /status = 'COMPLETED', end_time/,
  pacings: /set pacings = /,
  end: /update transfers t set\s+status = case when t.cancel_requested and/,
};
const BEGINS = /^\s*insert into transfers \(status, transfer_id/;
const TAKES = /^\s*with recursive busy as/;

const { query } = Client.prototype;
Client.prototype.query = function (statement, ...rest) {
  const text = statement?.text ?? '';
  if (awaited === '' && BEGINS.test(text)) armed = true;
  const isStep = STATEMENTS[step]?.test(text) === true;
  const isTaking = awaited !== '' && TAKES.test(text);
  if (!isStep && !isTaking) return query.call(this, statement, ...rest);
  if (isStep) die('before', step);
  const callback = rest.at(-1);
  if (typeof callback !== 'function') return query.call(this, statement, ...rest);
  const told = (error, result) => {
    if (isTaking && result?.rows?.some((row) => row.virtual_file === awaited)) armed = true;
    if (isStep) die('after', step);
    callback(error, result);
  };
  return query.call(this, statement, ...rest.slice(0, -1), told);
};

/** promtool, as the machine has it or as Debian's package of Prometheus carries it: kept outside the clone, so that it is fetched once. */
import { spawnSync } from 'node:child_process';
import { mkdirSync, mkdtempSync, readdirSync, renameSync, rmSync } from 'node:fs';
import { homedir } from 'node:os';
import { join } from 'node:path';
import { findProgram } from './process.mjs';

const FETCH_WITHIN_MS = 120_000;

const cache = () => join(process.env.XDG_CACHE_HOME || join(homedir(), '.cache'), 'pesit-node', 'promtool');

/** The promtool of this machine or of an earlier run, or undefined. */
export const findPromtool = () => findProgram('promtool') ?? findProgram('promtool', [cache()]);

/** Takes promtool out of Debian's package, without installing anything. Returns why not, or undefined. */
export function fetchPromtool() {
  const [apt, dpkg] = [findProgram('apt-get'), findProgram('dpkg-deb')];
  if (apt === undefined || dpkg === undefined) return 'neither promtool nor apt-get is on this machine';
  mkdirSync(cache(), { recursive: true });
  const draft = mkdtempSync(`${cache()}-`);
  const run = (program, args) => {
    const { status, stderr } = spawnSync(program, args, { cwd: draft, encoding: 'utf8', timeout: FETCH_WITHIN_MS });
    return status === 0 ? undefined : `${args[0]}: ${(stderr ?? '').trim().split('\n').at(-1)}`;
  };
  try {
    const failed = run(apt, ['download', '-qq', 'prometheus']);
    if (failed !== undefined) return failed;
    const found = readdirSync(draft).find((name) => name.endsWith('.deb'));
    if (found === undefined) return 'apt-get brought no package';
    const unpacked = run(dpkg, ['--extract', found, 'package']);
    if (unpacked !== undefined) return unpacked;
    // Its name last: what another run finds there is whole.
    renameSync(join(draft, 'package/usr/bin/promtool'), join(cache(), 'promtool'));
    return undefined;
  } finally {
    rmSync(draft, { recursive: true, force: true });
  }
}

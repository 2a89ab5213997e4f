import type { HealthComponent } from '../health/registry.js';
import type { Logger } from '../logging.js';
import type { Applied } from './apply-item.js';
import type { ListName } from './declared-list.js';

/** An item that could not be applied, and why: sentences with their places. */
export interface Refused {
  readonly list: ListName;
  readonly noun: string;
  readonly id: string;
  readonly reasons: readonly string[];
}

/** Names of one line of the log, or of one answer. */
const MOST_NAMES = 50;

interface Done {
  readonly list: ListName;
  readonly noun: string;
  readonly ids: string[];
}

/** Gathers what came of applying items, for the log. */
export class Outcome {
  readonly refused: Refused[] = [];
  readonly #done: Record<Exclude<Applied, 'unchanged'>, Done[]> = { created: [], changed: [] };
  readonly #counts: Record<Applied, number> = { created: 0, changed: 0, unchanged: 0 };

  add(list: ListName, noun: string, id: string, applied: Applied): void {
    this.#counts[applied] += 1;
    if (applied === 'unchanged') return;
    const all = this.#done[applied];
    const found = all.find((one) => one.noun === noun);
    if (found === undefined) all.push({ list, noun, ids: [id] });
    else found.ids.push(id);
  }

  refuse(refused: Refused): void {
    this.refused.push(refused);
  }

  /** How many were applied. */
  get applied(): number {
    return this.#counts.created + this.#counts.changed + this.#counts.unchanged;
  }

  /** One line for all that was done, one for each item that was refused; with bounds. @param file that names the items */
  log(logger: Logger, file: string): void {
    const named = (all: readonly Done[]) =>
      Object.fromEntries(all.map(({ noun, ids }) => [noun, ids.slice(0, MOST_NAMES)]));
    const { created, changed, unchanged } = this.#counts;
    const refused = this.refused.length;
    logger.info(
      { file, created: named(this.#done.created), changed: named(this.#done.changed) },
      `configuration file applied: ${created} created, ${changed} changed, ${unchanged} unchanged, ${refused} refused`,
    );
    logRefused(logger, file, this.refused);
  }
}

export const logRefused = (logger: Logger, file: string, refused: readonly Refused[]): void => {
  for (const { noun, id, reasons } of refused.slice(0, MOST_NAMES)) {
    logger.error({ file, object: id, reasons }, `${noun} of the configuration file is refused, the others are applied`);
  }
  const more = refused.length - MOST_NAMES;
  if (more > 0) logger.error({ file, more }, 'more of the configuration file is refused');
};

/** How far a node is with its configuration file. */
export interface DeclaredState {
  readonly waits: boolean;
  /** Why it could not be applied as a whole. */
  readonly failure: string | undefined;
  readonly applied: number;
  readonly refused: readonly Refused[];
}

/** Component `configurationFile`: not ready until the file was applied once; what is refused keeps no node from serving. */
export const healthOf = ({ waits, failure, applied, refused }: DeclaredState): HealthComponent => {
  if (waits) return { status: 'DOWN', details: { reason: failure ?? 'it is being applied' } };
  return {
    status: 'UP',
    details: {
      applied,
      refused: refused.length,
      ...(failure === undefined ? {} : { failure }),
      ...(refused.length === 0 ? {} : { reasons: refused.slice(0, MOST_NAMES).flatMap(({ reasons }) => reasons) }),
    },
  };
};

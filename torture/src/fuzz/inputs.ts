/** Input k of seed S: which tape, how it was changed, and where it goes. The same two numbers give the same input again. */
import { Chance } from '@pesit-node/protocol/testing';
import { cut, damaged, rearranged } from './mutations.js';
import { concatenated, generatedTapes, recordedTapes, type Tape } from './tapes.js';

export type Target = 'decoder' | 'framing' | 'session';

export interface Input {
  readonly target: Target;
  readonly tape: Tape;
  /** For the decoder one FPDU; for the others what arrives, in the pieces in which it does. */
  readonly pieces: readonly Buffer[];
  /** Decided while it runs: how the application answers. */
  readonly chance: Chance;
}

/** Generated sessions beside the recorded ones. */
const GENERATED = 300;
const MAX_CHANGES = 4;

export class Inputs {
  readonly #tapes: readonly Tape[];
  readonly #fpdus: readonly Buffer[];
  readonly #seed: number;

  /** @param recordings the directory of the recorded sessions */
  constructor(seed: number, recordings: string) {
    this.#seed = seed;
    const recorded = recordedTapes(recordings);
    const generated = Array.from({ length: GENERATED }, (_, k) =>
      generatedTapes(new Chance(k * 7919 + 1), `generated ${k}`),
    );
    this.#tapes = [...recorded, ...generated.flat()].filter(({ fpdus }) => fpdus.length > 0);
    this.#fpdus = this.#tapes.flatMap(({ fpdus }) => fpdus);
  }

  get tapes(): readonly Tape[] {
    return this.#tapes;
  }

  input(k: number): Input {
    const chance = new Chance(Math.imul(this.#seed, 0x9e3779b1) ^ Math.imul(k + 1, 0x85ebca6b));
    const target = chance.weighted<Target>([
      [70, 'decoder'],
      [15, 'framing'],
      [15, 'session'],
    ]);
    const tape = chance.pick(this.#tapes);
    if (target === 'decoder') {
      let fpdu = chance.pick(this.#fpdus);
      for (let changes = chance.between(1, MAX_CHANGES); changes > 0; changes--) fpdu = damaged(fpdu, chance);
      return { target, tape, pieces: [fpdu], chance };
    }
    return { target, tape, pieces: this.#stream(tape, chance), chance };
  }

  /** Mostly an entity at a time, as from a peer that waits for answers; sometimes in other pieces, or all at once. */
  #stream(tape: Tape, chance: Chance): Buffer[] {
    let changed: readonly Buffer[] = tape.fpdus;
    for (let changes = chance.below(MAX_CHANGES); changes > 0; changes--) {
      changed = rearranged(changed, chance, this.#fpdus);
    }
    const pieces = concatenated(changed, tape, chance);
    if (pieces.length > 0 && chance.below(3) === 0) {
      const at = chance.below(pieces.length);
      pieces[at] = damaged(pieces[at] as Buffer, chance);
    }
    return chance.below(5) === 0 ? [...cut(Buffer.concat(pieces), chance)] : pieces;
  }
}

/** The events of hooks: every channel, and what an event of it carries. */
import { EventKind } from '@pesit-node/service';

export type HookWay = 'webhook' | 'executable';
export type AttemptOutcome = 'delivered' | 'failed' | 'given up' | 'interrupted';

/**
 * `failed`: attempts did, and `hooks.give-up-after` is over, or the receiver wants no more. `not_tried`: its hook is deleted, or was
 * disabled or switched off until then. `too_many`: more than `hooks.max-deliveries` waited.
 */
export type GivenUpCause = 'failed' | 'not_tried' | 'too_many';

/** An attempt of a delivery is over; or it is given up without one. */
export const HOOK_ATTEMPTED = new EventKind<{
  readonly hook: string;
  /** Undefined: the hook is gone, or there was no attempt. */
  readonly by: HookWay | undefined;
  /** Id of the delivery. */
  readonly delivery: string;
  /** Id of the record. */
  readonly transfer: string;
  /** `transfer.completed` … */
  readonly event: string;
  /** From 1. */
  readonly attempt: number;
  /** `failed`: another one follows. `interrupted`: this process stopped, or stood still. */
  readonly outcome: AttemptOutcome;
  /** Only with `given up`. */
  readonly cause?: GivenUpCause;
  /** Why it was not delivered. */
  readonly reason: string | undefined;
}>('pesit:hook:attempted');

/** The receiver wants no more deliveries (410). */
export const HOOK_DISABLED = new EventKind<{ readonly hook: string; readonly reason: string }>('pesit:hook:disabled');

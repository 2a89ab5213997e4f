import type { z } from 'zod';

/** Which service a row concerns. */
export type AppName = 'server' | 'client';
export type AppScope = 'both' | AppName;

/** One row of the table: everything that the loader, the documentation and the error texts need to know of a key. */
export interface ConfigKey<T = unknown, A extends AppScope = AppScope> {
  readonly apps: A;
  /** Accepts the text of the environment and of flags as well as the typed value of YAML. */
  readonly type: z.ZodType<T>;
  readonly default: T;
  /** Where one app's default differs. */
  readonly defaultFor?: Readonly<Partial<Record<AppName, T>>>;
  readonly unit?: string;
  /** Never printed: neither in errors nor in the documentation's examples. */
  readonly secret?: boolean;
  /** SIGHUP changes it while the service runs: it is read where it is needed, and copied nowhere. */
  readonly reload?: boolean;
  /** A second name in the environment. */
  readonly alias?: string;
  /** The environment is not asked: orchestrators set variables of such names by themselves. */
  readonly notFromEnvironment?: boolean;
  /** Why it can mean nothing here, and what to set instead. The key is still accepted, and a warning tells who sets it. */
  readonly withoutEffect?: string;
  readonly description: string;
}

export const key = <T, A extends AppScope>(
  apps: A,
  row: {
    readonly type: z.ZodType<T>;
    readonly default: NoInfer<T>;
    readonly defaultFor?: Readonly<Partial<Record<AppName, NoInfer<T>>>>;
    readonly unit?: string;
    readonly secret?: boolean;
    readonly reload?: boolean;
    readonly alias?: string;
    readonly notFromEnvironment?: boolean;
    readonly description: string;
  },
): ConfigKey<T, A> => ({ apps, ...row });

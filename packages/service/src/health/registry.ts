import { within } from '@pesit-node/ground';
import { reasonOf } from '@pesit-node/ground';

export interface HealthComponent {
  /** `BLOCKED`: works, and is kept from serving by the license; the app counts as up, so that one can be installed. */
  readonly status: 'UP' | 'DOWN' | 'BLOCKED';
  /** Shown with a login alone: reasons, names and counts, never secrets. */
  readonly details?: Readonly<Record<string, unknown>>;
}

export interface HealthReport {
  readonly status: 'UP' | 'DOWN';
  readonly components: Readonly<Record<string, HealthComponent>>;
}

/** The part of a report that anybody may see: neither reasons nor names, which tell strangers where to knock next. */
export const statusAlone = ({ status, components }: HealthReport): HealthReport => ({
  status,
  components: Object.fromEntries(
    Object.entries(components).map(([name, component]) => [name, { status: component.status }]),
  ),
});

/** Why the report is DOWN, in words: the components with their reasons. Null when it is UP. */
export const reasonsOf = ({ status, components }: HealthReport): string | null => {
  if (status === 'UP') return null;
  const down = Object.entries(components).filter(([, component]) => component.status === 'DOWN');
  const reasons = down.map(([name, { details }]) => {
    const reason = details?.['reason'];
    return typeof reason === 'string' ? `${name}: ${reason}` : name;
  });
  return reasons.join('; ').slice(0, LONGEST_REASON);
};

export type HealthCheck = () => HealthComponent | Promise<HealthComponent>;

export interface HealthCheckOptions {
  /** Whether the app is ready only when this component is UP. Default false: it counts for overall health alone. */
  readonly readiness?: boolean;
}

const CHECK_MS = 2000;
/** Characters. */
const LONGEST_REASON = 1000;

/** The components of an app and whether it takes work. Liveness is no matter of components: a process that answers lives. */
export class HealthRegistry {
  readonly #checks = new Map<string, { readonly check: HealthCheck; readonly readiness: boolean }>();
  #draining = false;

  /** @throws when the name is taken. */
  register(name: string, check: HealthCheck, { readiness = false }: HealthCheckOptions = {}): void {
    if (this.#checks.has(name)) throw new Error(`health component ${name} is registered twice`);
    this.#checks.set(name, { check, readiness });
  }

  /** From now on the app is not ready: first step of the shutdown. */
  drain(): void {
    this.#draining = true;
  }

  get draining(): boolean {
    return this.#draining;
  }

  /** Every component; DOWN when one is. */
  async health(): Promise<HealthReport> {
    return this.#report([...this.#checks]);
  }

  /** Components that readiness depends on, and `lifecycle`, which is DOWN while draining. */
  async readiness(): Promise<HealthReport> {
    const { components } = await this.#report([...this.#checks].filter(([, { readiness }]) => readiness));
    const lifecycle: HealthComponent = this.#draining
      ? { status: 'DOWN', details: { reason: 'draining' } }
      : { status: 'UP' };
    return summary({ lifecycle, ...components });
  }

  async #report(entries: readonly (readonly [string, { readonly check: HealthCheck }])[]): Promise<HealthReport> {
    const results = await Promise.all(
      entries.map(async ([name, { check }]) => [name, await safely(name, check)] as const),
    );
    return summary(Object.fromEntries(results));
  }
}

/** A check that throws or hangs is a component that is DOWN, never a probe without an answer. */
const safely = async (name: string, check: HealthCheck): Promise<HealthComponent> => {
  try {
    return await within(Promise.resolve(check()), CHECK_MS, `${name} did not answer within ${CHECK_MS} ms`);
  } catch (error) {
    return { status: 'DOWN', details: { reason: reasonOf(error) } };
  }
};

const summary = (components: Readonly<Record<string, HealthComponent>>): HealthReport => ({
  status: Object.values(components).every(({ status }) => status !== 'DOWN') ? 'UP' : 'DOWN',
  components,
});

import type { AppName, EventStream } from '@pesit-node/service';

export interface SpansOptions {
  readonly config: { readonly 'otel.endpoint': string; readonly 'otel.authorization': string };
  readonly app: AppName;
  readonly version: string;
  /** Name of the machine or pod. */
  readonly node: string;
  readonly events: EventStream;
}

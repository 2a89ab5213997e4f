import type { LifecycleStep } from '@pesit-node/service';

import type { SpansOptions } from './options.js';

/**
 * The step of an app that sends spans of its sessions and transfers to `otel.endpoint`. Without one nothing of OpenTelemetry is
 * loaded. To be stopped after the last session: it then sends what it still has.
 */
export const spansStep = (options: SpansOptions): LifecycleStep => {
  let end: (() => Promise<void>) | undefined;
  return {
    name: 'spans',
    stopTimeoutMs: 6000,
    start: async () => {
      if (options.config['otel.endpoint'] === '') return;
      const { exportSpans } = await import('./export-spans.js');
      end = exportSpans(options);
    },
    stop: async () => {
      await end?.();
    },
  };
};

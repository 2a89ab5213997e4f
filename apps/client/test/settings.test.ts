import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

import { expect, test } from '@jest/globals';
import { LiveConfig } from '@pesit-node/service';

import { exchangeSettings } from '../src/exchange/settings.js';

test('what SIGHUP changes reaches the exchange, which looks it up each time', () => {
  const directory = mkdtempSync(join(tmpdir(), 'pesit-settings-'));
  try {
    const file = join(directory, 'pesit.yaml');
    writeFileSync(file, '');
    const live = new LiveConfig({ app: 'client', env: { PESIT_CONFIG: file }, argv: [], cwd: directory });
    const settings = exchangeSettings(live.config);
    writeFileSync(
      file,
      'transfer: { retry: { attempts: 9 }, executor: { queue-capacity: 7 }, sync-window: 3, checksum: none,' +
        ' write-timeout: 5000, chunk-size: 8192, read-buffer-size: 9000, write-buffer-size: 9001, socket-buffer-size: 9002 }\n',
    );
    expect(live.reload().needRestart).toEqual(['transfer.checksum']);
    // A transfer keeps to one checksum from its start to its end.
    expect(settings).toMatchObject({ retry: { attempts: 9 }, queueCapacity: 7, syncWindow: 3, checksum: 'sha256' });
    expect(settings).toMatchObject({ writeTimeout: 5000, chunkSize: 8192 });
    expect(settings).toMatchObject({ readBufferSize: 9000, writeBufferSize: 9001, socketBufferSize: 9002 });
  } finally {
    rmSync(directory, { recursive: true });
  }
});

import { useRoute } from 'preact-iso';

import { files } from '../api/configuration.ts';
import { ResourceForm } from '../parts/form.tsx';
import { FILE } from '../parts/layouts.ts';
import { EnabledPill, EnabledSwitch, One } from '../parts/one.tsx';
import { Card } from '../parts/page.tsx';
import { words as configuration } from '../texts/configuration.ts';

/** A virtual file. */
export const FilePage = () => {
  const { params } = useRoute();
  const id = params['id'] ?? '';
  const { files: words, common } = configuration.value;
  return (
    <One
      {...{ id, path: '/files', back: words.back, resource: files }}
      titleOf={({ fileId, name }) => (name === null ? fileId : `${fileId} · ${name}`)}
      pills={({ enabled }) => (
        <>
          <EnabledPill isEnabled={enabled} />
          <a href={`/transfers?virtualFile=${encodeURIComponent(id)}`}>{common.transfers}</a>
        </>
      )}
      actions={({ enabled }, { ask }) => (
        <EnabledSwitch
          isEnabled={enabled}
          change={(isEnabled) => files.change(id, { enabled: isEnabled })}
          changed={ask}
        />
      )}
    >
      {(row, { ask }) => (
        <Card title={common.settings}>
          <ResourceForm
            {...{ resource: 'file', layout: FILE, row, submit: common.save }}
            save={(body) => files.change(id, body).then(ask)}
          />
        </Card>
      )}
    </One>
  );
};

import { useLocation } from 'preact-iso';

import { may } from '../api/session.ts';
import { MessageForm, ReceiveForm } from '../parts/ask-forms.tsx';
import { FailureNote } from '../parts/failure-note.tsx';
import { Jobs } from '../parts/jobs.tsx';
import { Card, Empty, Loading, Page } from '../parts/page.tsx';
import { usePeers } from '../parts/peers.ts';
import { SendForm } from '../parts/send-form.tsx';
import { texts } from '../texts/index.ts';
import { sendWords } from '../texts/send.ts';
import '../style/send.css';

const FORMS = { file: SendForm, receive: ReceiveForm, message: MessageForm } as const;
const WAYS = ['file', 'receive', 'message'] as const;
const wayOf = (asked: string | undefined): (typeof WAYS)[number] => WAYS.find((way) => way === asked) ?? 'file';

/** Files that go to a partner, a file that comes from one, a message; below them what became of each. */
export const SendPage = () => {
  const { query } = useLocation();
  const { pages } = texts.value;
  const send = sendWords.value;
  const peers = usePeers();
  const preset = { server: query['server'], file: query['file'] };
  const way = wayOf(query['what']);
  const Form = FORMS[way];
  if (!may('operator')) {
    return (
      <Page title={pages.send}>
        <Empty title={send.mayNot} />
      </Page>
    );
  }
  return (
    <Page title={pages.send}>
      <nav class="tabs" aria-label={send.ways}>
        {WAYS.map((one) => (
          <a
            key={one}
            href={one === 'file' ? '/send' : `/send?what=${one}`}
            aria-current={one === way ? 'page' : undefined}
          >
            {send.way[one]}
          </a>
        ))}
      </nav>
      <Card title={send.way[way]}>
        <FailureNote failure={peers.failure} again={peers.ask} />
        {peers.isKnown && peers.options.length === 0 ? (
          <Empty title={send.noServer}>
            <span>{send.noServerHint}</span>
          </Empty>
        ) : peers.isKnown ? (
          <Form peers={peers} preset={preset} />
        ) : (
          peers.failure === undefined && <Loading />
        )}
      </Card>
      <Jobs />
    </Page>
  );
};

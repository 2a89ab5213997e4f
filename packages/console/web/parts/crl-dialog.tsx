import { setCrlUrls } from '../api/certificates.ts';
import { certificatesWords } from '../texts/certificates.ts';
import { useAction } from './action.tsx';
import { DialogEnd } from './dialog-end.tsx';
import { Dialog } from './dialog.tsx';
import { given } from './target-fields.tsx';

interface Props {
  /** Of the truststore. */
  readonly name: string;
  readonly urls: readonly string[];
  readonly close: () => void;
  readonly done: () => void;
}

/** Where the CRLs of a truststore are fetched, one a line. */
export const CrlDialog = ({ name, urls, close, done }: Props) => {
  const certificates = certificatesWords.value;
  const action = useAction();
  const submit = (event: SubmitEvent): void => {
    event.preventDefault();
    const form = new FormData(event.currentTarget as HTMLFormElement);
    const lines = (given(form, 'urls') ?? '').split(/\s+/).filter((one) => one !== '');
    action.run(() => setCrlUrls(name, lines).then(done));
  };
  return (
    <Dialog title={certificates.crlUrlsOf(name)} close={close}>
      <form class="stack" onSubmit={submit}>
        <div class="field">
          <label for="crl-urls">{certificates.crlUrls}</label>
          <textarea
            id="crl-urls"
            name="urls"
            rows={4}
            spellcheck={false}
            placeholder="http://crl.bank.example/ca.crl"
            aria-describedby="crl-urls-help"
            defaultValue={urls.join('\n')}
          />
          <small class="quiet" id="crl-urls-help">
            {certificates.crlUrlsHint}
          </small>
        </div>
        <DialogEnd action={action} word={certificates.store} close={close} />
      </form>
    </Dialog>
  );
};

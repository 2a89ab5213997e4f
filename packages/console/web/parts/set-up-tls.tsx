import { certificateIn, PROOFS } from '../api/set-up.ts';
import type { Proof } from '../api/set-up.ts';
import { words as configuration } from '../texts/configuration.ts';

export interface TlsWish {
  readonly keystore: string;
  readonly proof: Proof;
  readonly own: string;
}

interface Props extends TlsWish {
  /** Keystores to choose from; undefined: the listener has one already. */
  readonly keystores: readonly string[] | undefined;
  /** The listener takes nobody without a certificate. */
  readonly isNeeded: boolean;
  readonly change: (change: Partial<TlsWish>) => void;
}

/** What TLS takes: the certificate of a new listener, and how the partner proves who it is. */
export const TlsFields = ({ keystores, isNeeded, keystore, proof, own, change }: Props) => {
  const { tls } = configuration.value.setUp;
  return (
    <>
      {keystores !== undefined && (
        <div class="field">
          <label for="set-up-keystore">{tls.keystore}</label>
          <select
            id="set-up-keystore"
            aria-describedby={keystore === '' ? 'set-up-keystore-help' : undefined}
            value={keystore}
            onChange={(event) => change({ keystore: event.currentTarget.value })}
          >
            {keystores.map((name) => (
              <option key={name} value={name} selected={name === keystore}>
                {name}
              </option>
            ))}
            <option value="" selected={keystore === ''}>
              {tls.newKeystore}
            </option>
          </select>
          {keystore === '' && (
            <span class="help" id="set-up-keystore-help">
              {tls.newKeystoreHint}
            </span>
          )}
        </div>
      )}
      <div class="field">
        <label for="set-up-proof">{tls.proof}</label>
        <select
          id="set-up-proof"
          aria-describedby={proof === 'password' ? undefined : 'set-up-proof-help'}
          value={proof}
          onChange={(event) => change({ proof: event.currentTarget.value as Proof })}
        >
          {PROOFS.filter((one) => one !== 'password' || !isNeeded).map((one) => (
            <option key={one} value={one} selected={one === proof}>
              {tls.proofs[one]}
            </option>
          ))}
        </select>
        {proof !== 'password' && (
          <span class="help" id="set-up-proof-help">
            {tls.proofHint}
          </span>
        )}
      </div>
      {proof === 'own' && (
        <label class="field wide">
          <span>{tls.own}</span>
          <textarea
            class="mono"
            rows={4}
            required
            spellcheck={false}
            placeholder="-----BEGIN CERTIFICATE-----"
            value={own}
            onInput={({ currentTarget: area }) => {
              area.setCustomValidity(area.value === '' || certificateIn(area.value) !== undefined ? '' : tls.ownBad);
              change({ own: area.value });
            }}
          />
        </label>
      )}
    </>
  );
};

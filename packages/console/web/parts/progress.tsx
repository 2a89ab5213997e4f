import type { Progress } from '../api/transfers.ts';
import { bytes, fromNow, rate } from '../texts/format.ts';
import { texts } from '../texts/index.ts';

/** What a bar shows of the progress that is told. */
export type Shown = Pick<Progress, 'bytesTransferred' | 'expectedBytes' | 'isAnnounced' | 'rate' | 'estimatedEnd'>;

interface Props {
  readonly of: Shown;
  readonly label: string;
}

/** How far a transfer is: a bar where it is known how much it will be, and the figures. */
export const ProgressBar = ({ of, label }: Props) => {
  const { common } = texts.value;
  const { bytesTransferred: done, expectedBytes: all, rate: speed, estimatedEnd: end } = of;
  const share = all === null || all === 0 ? undefined : Math.min(done / all, 1);
  return (
    <div class="stack">
      {share === undefined ? (
        <progress aria-label={label} />
      ) : (
        <progress aria-label={label} value={Math.round(share * 1000)} max={1000} />
      )}
      <div class="row quiet">
        <span>
          {bytes(done)}
          {all === null ? '' : ` / ${of.isAnnounced ? '≈ ' : ''}${bytes(all)}`}
        </span>
        {speed !== null && <span>{rate(speed)}</span>}
        {end !== null && (
          <span>
            {common.remaining} {fromNow(end)}
          </span>
        )}
      </div>
    </div>
  );
};

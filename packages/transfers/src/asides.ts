/** Things about a transfer that are worth a line in the log and change nothing of its course, each with that line. */
export const TRANSFER_ASIDES = {
  // At its end.
  'file not closed': ['warn', 'could not close the file that was sent'],
  'staging not released': ['error', 'could not release or remove the staged file'],
  'fault of this node': ['error', 'transfer failed because of an error in this node'],
  'end belongs to another': ['warn', 'could not record the end of the transfer: another process has taken it over'],
  'end not recorded yet': ['warn', 'could not record the end of the transfer yet: trying again'],
  'end still not recorded': ['debug', 'could not record the end of the transfer yet: trying again'],
  'leftovers kept': ['error', 'could not remove what was kept for a restart: the next sweep removes it'],
  // Delivered, and not recorded.
  'fetched before recorded': ['warn', 'delivered file was fetched before its transfer could be recorded'],
  'delivery stays': ['error', 'could not record the delivered file: the next attempt overwrites it'],
  'delivery taken back': ['error', 'took the delivered file back: its transfer could not be recorded'],
  'delivery claimed': ['warn', 'another process has claimed the delivered file: it says what became of the transfer'],
  'completion withdrawn': [
    'warn',
    'the record said COMPLETED of a delivery that was taken back: it says FAILED now, and the partner sends the file again',
  ],
  'delivery not taken back': ['error', 'could not take the delivered file back: the partner may deliver it twice'],
  // Continued.
  'delivery completed': ['warn', 'completed a delivery that was cut off'],
  'staging resumed': ['info', 'staged file resumed'],
  'another file offered': [
    'warn',
    'the partner offers another file than at the first attempt: receiving it from the start',
  ],
  'another file sent': [
    'warn',
    'the partner restarts a transfer that is complete here, but with another file: taking it as a new transfer',
  ],
  'name not confirmed': [
    'info',
    'the partner names no file (PI 37): this node cannot check that it is the one asked for',
  ],
  'session replaced': ['info', 'idle session was dead or out of date: taking another'],
  // Left by a process that died.
  'failed with its process': ['warn', 'marked a transfer of a dead process as FAILED: the partner may restart it'],
  'completed without its process': ['warn', 'marked a transfer of a dead process as COMPLETED: its file was delivered'],
  'not inspected': ['error', 'could not inspect an interrupted transfer yet: leaving it as it is, trying again'],
  'name freed': ['warn', 'freed the name of a delivery that was cut off: its file was empty'],
  'taken back': ['warn', 'took a transfer back from a process that ended without recording it'],
  // Nobody came back for it.
  expired: ['info', 'interrupted transfer can no longer be restarted: its time is over, or the partner began it anew'],
  'staging removed': ['info', 'removed the staged file of the transfer: nobody came back for it'],
  'points removed': ['info', 'removed the table of points of the transfer: nobody came back for it'],
  'content removed': ['info', 'removed the content of a transfer that has ended'],
  'not begun in time': ['warn', 'gave the transfer up: its expiresAt has come'],
  // By REST.
  queued: ['debug', 'transfer queued'],
  'tried again': ['info', 'transfer tried again on request'],
  'order released': ['info', 'failed transfer keeps those behind it in its order waiting no longer, on request'],
  'cancel requested': ['info', 'transfer cancelled on request'],
} as const satisfies Readonly<Record<string, readonly ['debug' | 'info' | 'warn' | 'error', string]>>;

export type TransferAside = keyof typeof TRANSFER_ASIDES;

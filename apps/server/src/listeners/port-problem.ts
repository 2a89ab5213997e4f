/** Why a port cannot be taken, and what to do. */
export const portProblem = (
  error: NodeJS.ErrnoException,
  port: number | null,
  otherListener: string | undefined,
): string => {
  switch (error.code) {
    case 'EADDRINUSE':
      return otherListener === undefined
        ? `port ${port} is in use by another process: stop it, or choose another port`
        : `port ${port} is in use by the listener ${otherListener}: stop it, or choose another port`;
    case 'EACCES':
      return `port ${port} needs more rights: choose a port above 1023`;
    case 'EADDRNOTAVAIL':
    case 'ENOTFOUND':
      return `port ${port} cannot be taken on that address (${error.message}): correct listener.host`;
    case undefined:
      return error.message;
    default:
      return `port ${port} cannot be taken: ${error.message}`;
  }
};

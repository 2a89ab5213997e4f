/** Fields that each remote server has and no listener: they tell the two apart in the list `servers`. */
const OF_REMOTE_SERVERS = ['host', 'name', 'clientId'] as const;

/** Whether an item of `servers` is a remote server, for the client app; else it is a listener, for the server app. */
export const isRemoteServer = (item: Readonly<Record<string, unknown>>): boolean =>
  OF_REMOTE_SERVERS.some((field) => item[field] !== undefined);

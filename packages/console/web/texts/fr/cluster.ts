import type { Texts } from '../en/index.ts';

export const cluster: Texts['cluster'] = {
  pod: 'Nœud',
  pods: 'Nœuds',
  state: 'État',
  version: 'Version',
  sessions: 'Sessions',
  running: 'Transferts',
  address: 'Adresse',
  started: 'Démarré',
  ready: 'prêt',
  unknown: 'pas encore connu',
  facts: 'La grappe',
  name: 'Nom',
  leader: 'Dirige',
  redis: 'Redis',
  connected: 'connecté',
  redisAway: (since: string) =>
    `Redis est absent depuis le ${since} : aucun autre nœud n’est connu, et personne ne dirige jusqu’à son retour.`,
  single: 'Ce service tourne sur un seul nœud : cluster.enabled est inactif. L’autre application n’est pas montrée.',
  versions: (list: string) =>
    `Les nœuds n’ont pas la même version : ${list}. Une mise à jour est en cours, ou s’est arrêtée à mi-chemin.`,
  drain:
    'Pour vider un nœud, terminez-le : envoyez-lui SIGTERM, ou laissez faire l’orchestrateur. Il n’est plus prêt, ses transferts se terminent dans le délai shutdown.drain-timeout, les autres continuent sur un autre nœud.',
};

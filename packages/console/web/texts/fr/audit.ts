import type { Texts } from '../en/index.ts';

export const audit: Texts['audit'] = {
  names: {
    actor: 'Qui',
    action: 'Action',
    objectType: 'Nature de l’objet',
    object: 'Objet',
    from: 'Du',
    to: 'Au',
    node: 'Nœud',
    q: 'Partie de l’objet ou du détail',
  },
  time: 'Quand',
  what: 'Détail',
  details: (number: string) => `Détail de l’entrée ${number}`,
  field: 'Champ',
  before: 'Avant',
  after: 'Après',
  empty: 'vide',
  entry: 'Entrée',
  none: 'Rien n’a encore été noté.',
  noMatch: 'Aucune entrée ne correspond à ces filtres.',
  found: (count: string, isExact: boolean) => (isExact ? `Entrées : ${count}` : `Entrées : ${count} ou plus`),
  mayNot: 'Le journal d’audit demande le rôle exploitant.',
};

export function identityOf(path: string): string | undefined;

// Conversations in IndexedDB.
import type { Conversation } from './types';

const store = 'conversations';
let opened: Promise<IDBDatabase> | null = null;

function database(): Promise<IDBDatabase> {
  opened ??= new Promise((resolve, reject) => {
    const request = indexedDB.open('slipstream', 1);
    request.onupgradeneeded = () => request.result.createObjectStore(store, { keyPath: 'id' });
    request.onsuccess = () => resolve(request.result);
    request.onerror = () => reject(request.error);
  });
  return opened;
}

async function transact<T>(mode: IDBTransactionMode, work: (table: IDBObjectStore) => IDBRequest<T>): Promise<T> {
  const transaction = (await database()).transaction(store, mode);
  const request = work(transaction.objectStore(store));
  return new Promise((resolve, reject) => {
    transaction.oncomplete = () => resolve(request.result);
    transaction.onerror = () => reject(transaction.error);
    transaction.onabort = () => reject(transaction.error);
  });
}

export const readAll = (): Promise<Conversation[]> => transact('readonly', (table) => table.getAll());
export const read = (id: string): Promise<Conversation | undefined> => transact('readonly', (table) => table.get(id));
export const write = (conversation: Conversation): Promise<unknown> => transact('readwrite', (table) => table.put(conversation));
export const erase = (id: string): Promise<unknown> => transact('readwrite', (table) => table.delete(id));

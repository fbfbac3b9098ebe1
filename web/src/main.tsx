import { render } from 'preact';
import { connect } from './state/connection';
import { start } from './state/conversations';
import './style/tokens.css';
import './style/layout.css';
import './style/messages.css';
import './style/prose.css';
import './style/controls.css';
import { App } from './ui/app';

void connect();
void start().finally(() => render(<App />, document.getElementById('app')!));

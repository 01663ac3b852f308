"""The first tables of a release; `0001` was a state before it."""

import sqlalchemy as sa
from alembic import op

revision = "0002"
down_revision = None
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.create_table('binding',
    sa.Column('ws', sa.Integer(), nullable=False),
    sa.Column('job', sa.Text(), nullable=False),
    sa.Column('name', sa.Text(), nullable=False),
    sa.Column('value', sa.Text(), nullable=True),
    sa.Column('type', sa.Text(), nullable=True),
    sa.Column('size', sa.BigInteger(), server_default='0', nullable=False),
    sa.Column('errors', sa.BigInteger(), server_default='0', nullable=False),
    sa.Column('at', sa.BigInteger(), nullable=False),
    sa.Column('run', sa.BigInteger(), nullable=True),
    sa.PrimaryKeyConstraint('ws', 'job', 'name', name=op.f('pk_binding')),
    sqlite_with_rowid=False
    )
    op.create_table('blob',
    sa.Column('ws', sa.Integer(), nullable=False),
    sa.Column('hash', sa.Text(), nullable=False),
    sa.Column('body', sa.Text(), nullable=False),
    sa.PrimaryKeyConstraint('ws', 'hash', name=op.f('pk_blob')),
    sqlite_with_rowid=False
    )
    op.create_table('call',
    sa.Column('ws', sa.Integer(), nullable=False),
    sa.Column('run', sa.BigInteger(), nullable=False),
    sa.Column('path', sa.Text().with_variant(sa.Text(collation='C'), 'postgresql'), nullable=False),
    sa.Column('attempt', sa.BigInteger(), server_default='0', nullable=False),
    sa.Column('kind', sa.Text(), nullable=False),
    sa.Column('n', sa.BigInteger(), server_default='0', nullable=False),
    sa.Column('body', sa.Text(), nullable=False),
    sa.Column('at', sa.BigInteger(), nullable=False),
    sa.Column('state', sa.Text(), nullable=False),
    sa.Column('idempotent', sa.BigInteger(), server_default='0', nullable=False),
    sa.Column('timeout_ms', sa.BigInteger(), server_default='0', nullable=False),
    sa.Column('sent', sa.BigInteger(), nullable=True),
    sa.Column('done', sa.BigInteger(), nullable=True),
    sa.Column('holder', sa.Text(), nullable=True),
    sa.PrimaryKeyConstraint('ws', 'run', 'path', 'attempt', 'kind', 'n', name=op.f('pk_call')),
    sqlite_with_rowid=False
    )
    with op.batch_alter_table('call', schema=None) as batch_op:
        batch_op.create_index('ix_call_open', ['ws', 'at'], unique=False, sqlite_where=sa.text("state in ('queued','sent')"), postgresql_where=sa.text("state in ('queued','sent')"))

    op.create_table('delivery',
    sa.Column('ws', sa.Integer(), nullable=False),
    sa.Column('seq', sa.BigInteger().with_variant(sa.Integer(), 'sqlite'), autoincrement=True, nullable=False),
    sa.Column('run', sa.BigInteger(), nullable=False),
    sa.Column('path', sa.Text().with_variant(sa.Text(collation='C'), 'postgresql'), nullable=False),
    sa.Column('kind', sa.Text(), nullable=False),
    sa.Column('attempt', sa.BigInteger(), server_default='0', nullable=False),
    sa.Column('to', sa.Text(), nullable=False),
    sa.Column('n', sa.Text(), server_default='', nullable=False),
    sa.Column('card', sa.Text(), nullable=False),
    sa.Column('at', sa.BigInteger(), nullable=False),
    sa.Column('opens', sa.BigInteger(), server_default='0', nullable=False),
    sa.Column('state', sa.Text(), nullable=False),
    sa.Column('channel', sa.Text(), nullable=True),
    sa.Column('conversation', sa.Text(), nullable=True),
    sa.Column('ref', sa.Text(), nullable=True),
    sa.Column('outcome', sa.Text(), nullable=True),
    sa.Column('shown', sa.BigInteger(), server_default='0', nullable=False),
    sa.Column('error', sa.Text(), nullable=True),
    sa.Column('done', sa.BigInteger(), nullable=True),
    sa.PrimaryKeyConstraint('seq', name=op.f('pk_delivery')),
    sa.UniqueConstraint('ws', 'run', 'path', 'kind', 'attempt', 'to', 'n', name=op.f('uq_delivery_ws_run_path_kind_attempt_to_n'))
    )
    with op.batch_alter_table('delivery', schema=None) as batch_op:
        batch_op.create_index('ix_delivery_held', ['ws', 'run', 'to', 'seq'], unique=False, sqlite_where=sa.text("state = 'held' and outcome is null"), postgresql_where=sa.text("state = 'held' and outcome is null"))
        batch_op.create_index('ix_delivery_open', ['ws', 'to', 'run'], unique=False, sqlite_where=sa.text("kind in ('card','approval','doubt') and outcome is null and state <> 'held'"), postgresql_where=sa.text("kind in ('card','approval','doubt') and outcome is null and state <> 'held'"))
        batch_op.create_index('ix_delivery_queued', ['seq'], unique=False, sqlite_where=sa.text("state in ('queued','sent')"), postgresql_where=sa.text("state in ('queued','sent')"))
        batch_op.create_index('ix_delivery_stale', ['seq'], unique=False, sqlite_where=sa.text('outcome is not null and shown = 0'), postgresql_where=sa.text('outcome is not null and shown = 0'))

    op.create_table('element',
    sa.Column('ws', sa.Integer(), nullable=False),
    sa.Column('run', sa.BigInteger(), nullable=False),
    sa.Column('path', sa.Text().with_variant(sa.Text(collation='C'), 'postgresql'), nullable=False),
    sa.Column('attempt', sa.BigInteger(), server_default='0', nullable=False),
    sa.Column('at', sa.BigInteger(), nullable=False),
    sa.Column('value', sa.Text(), nullable=True),
    sa.PrimaryKeyConstraint('ws', 'run', 'path', 'attempt', 'at', name=op.f('pk_element')),
    sqlite_with_rowid=False
    )
    op.create_table('endpoint',
    sa.Column('ws', sa.Integer(), nullable=False),
    sa.Column('token', sa.Text(), nullable=False),
    sa.Column('run', sa.BigInteger(), nullable=False),
    sa.Column('path', sa.Text().with_variant(sa.Text(collation='C'), 'postgresql'), nullable=False),
    sa.Column('until', sa.BigInteger(), nullable=False),
    sa.Column('called', sa.BigInteger(), nullable=True),
    sa.PrimaryKeyConstraint('token', name=op.f('pk_endpoint'))
    )
    op.create_table('event',
    sa.Column('ws', sa.Integer(), nullable=False),
    sa.Column('seq', sa.BigInteger().with_variant(sa.Integer(), 'sqlite'), autoincrement=True, nullable=False),
    sa.Column('stream', sa.Text(), nullable=False),
    sa.Column('id', sa.Text(), nullable=False),
    sa.Column('sender', sa.Text(), nullable=True),
    sa.Column('conversation', sa.Text(), nullable=True),
    sa.Column('at', sa.BigInteger(), nullable=False),
    sa.Column('body', sa.Text(), nullable=False),
    sa.Column('raw', sa.Text(), nullable=True),
    sa.Column('routed', sa.BigInteger(), server_default='0', nullable=False),
    sa.PrimaryKeyConstraint('seq', name=op.f('pk_event')),
    sa.UniqueConstraint('ws', 'stream', 'id', name=op.f('uq_event_ws_stream_id'))
    )
    with op.batch_alter_table('event', schema=None) as batch_op:
        batch_op.create_index('ix_event_at', ['ws', 'stream', 'at'], unique=False)
        batch_op.create_index('ix_event_sender', ['ws', 'stream', 'sender', 'at'], unique=False)
        batch_op.create_index('ix_event_unrouted', ['seq'], unique=False, sqlite_where=sa.text('routed = 0'), postgresql_where=sa.text('routed = 0'))

    op.create_table('history',
    sa.Column('ws', sa.Integer(), nullable=False),
    sa.Column('run', sa.BigInteger(), nullable=False),
    sa.Column('n', sa.BigInteger(), nullable=False),
    sa.Column('at', sa.BigInteger(), nullable=False),
    sa.Column('what', sa.Text(), nullable=False),
    sa.Column('path', sa.Text().with_variant(sa.Text(collation='C'), 'postgresql'), nullable=True),
    sa.Column('by', sa.Text(), nullable=True),
    sa.Column('data', sa.Text(), nullable=True),
    sa.Column('hash', sa.LargeBinary(), nullable=False),
    sa.PrimaryKeyConstraint('ws', 'run', 'n', name=op.f('pk_history')),
    sqlite_with_rowid=False
    )
    op.create_table('identity',
    sa.Column('ws', sa.Integer(), nullable=False),
    sa.Column('channel', sa.Text(), nullable=False),
    sa.Column('ref', sa.Text(), nullable=False),
    sa.Column('email', sa.Text(), nullable=False),
    sa.PrimaryKeyConstraint('ws', 'channel', 'ref', name=op.f('pk_identity')),
    sqlite_with_rowid=False
    )
    op.create_table('job',
    sa.Column('ws', sa.Integer(), nullable=False),
    sa.Column('id', sa.Text(), nullable=False),
    sa.Column('title', sa.Text(), nullable=True),
    sa.Column('conversation', sa.Text(), nullable=True),
    sa.Column('customer', sa.Text(), nullable=True),
    sa.Column('created', sa.BigInteger(), nullable=True),
    sa.Column('private', sa.BigInteger(), server_default='0', nullable=False),
    sa.PrimaryKeyConstraint('ws', 'id', name=op.f('pk_job')),
    sqlite_with_rowid=False
    )
    with op.batch_alter_table('job', schema=None) as batch_op:
        batch_op.create_index('ix_job_conversation', ['ws', 'conversation'], unique=False)

    op.create_table('lease',
    sa.Column('ws', sa.Integer(), nullable=False),
    sa.Column('name', sa.Text(), nullable=False),
    sa.Column('holder', sa.Text(), nullable=False),
    sa.Column('fence', sa.BigInteger(), server_default='0', nullable=False),
    sa.Column('until', sa.BigInteger(), nullable=False),
    sa.PrimaryKeyConstraint('ws', 'name', name=op.f('pk_lease')),
    sqlite_with_rowid=False
    )
    op.create_table('login',
    sa.Column('ws', sa.Integer(), nullable=False),
    sa.Column('hash', sa.Text(), nullable=False),
    sa.Column('email', sa.Text(), nullable=False),
    sa.Column('until', sa.BigInteger(), nullable=False),
    sa.Column('used', sa.BigInteger(), nullable=True),
    sa.PrimaryKeyConstraint('hash', name=op.f('pk_login'))
    )
    op.create_table('member',
    sa.Column('ws', sa.Integer(), nullable=False),
    sa.Column('job', sa.Text(), nullable=False),
    sa.Column('email', sa.Text(), nullable=False),
    sa.PrimaryKeyConstraint('ws', 'job', 'email', name=op.f('pk_member')),
    sqlite_with_rowid=False
    )
    op.create_table('more',
    sa.Column('ws', sa.Integer(), nullable=False),
    sa.Column('run', sa.BigInteger(), nullable=False),
    sa.PrimaryKeyConstraint('ws', 'run', name=op.f('pk_more')),
    sqlite_with_rowid=False
    )
    op.create_table('op',
    sa.Column('ws', sa.Integer(), nullable=False),
    sa.Column('run', sa.BigInteger(), nullable=False),
    sa.Column('path', sa.Text().with_variant(sa.Text(collation='C'), 'postgresql'), nullable=False),
    sa.Column('place', sa.Text().with_variant(sa.Text(collation='C'), 'postgresql'), nullable=True),
    sa.Column('region', sa.Text().with_variant(sa.Text(collation='C'), 'postgresql'), nullable=False),
    sa.Column('rank', sa.BigInteger(), nullable=False),
    sa.Column('op', sa.Text(), nullable=False),
    sa.Column('ident', sa.Text(), nullable=True),
    sa.Column('state', sa.Text(), nullable=False),
    sa.Column('open', sa.BigInteger(), server_default='0', nullable=False),
    sa.Column('own', sa.BigInteger(), server_default='0', nullable=False),
    sa.Column('hot', sa.BigInteger(), server_default='0', nullable=False),
    sa.Column('unclosed', sa.BigInteger(), server_default='0', nullable=False),
    sa.Column('needs', sa.BigInteger(), server_default='0', nullable=False),
    sa.Column('attempt', sa.BigInteger(), server_default='0', nullable=False),
    sa.Column('rev', sa.BigInteger(), server_default='0', nullable=False),
    sa.Column('started', sa.BigInteger(), nullable=True),
    sa.Column('since', sa.BigInteger(), nullable=True),
    sa.Column('due', sa.BigInteger(), nullable=True),
    sa.Column('ended', sa.BigInteger(), nullable=True),
    sa.Column('by', sa.Text(), nullable=True),
    sa.Column('value', sa.Text(), nullable=True),
    sa.Column('has_value', sa.BigInteger(), server_default='0', nullable=False),
    sa.Column('data', sa.Text(), nullable=True),
    sa.PrimaryKeyConstraint('ws', 'run', 'path', name=op.f('pk_op')),
    sqlite_with_rowid=False
    )
    with op.batch_alter_table('op', schema=None) as batch_op:
        batch_op.create_index('ix_op_pending', ['ws', 'run', 'path'], unique=False, sqlite_where=sa.text("state in ('running','waiting','gated','uncertain')"), postgresql_where=sa.text("state in ('running','waiting','gated','uncertain')"))
        batch_op.create_index('ix_op_planned', ['ws', 'run', 'place', 'path'], unique=False, sqlite_where=sa.text("state = 'planned' and place is not null"), postgresql_where=sa.text("state = 'planned' and place is not null"))
        batch_op.create_index('ix_op_region', ['ws', 'run', 'region', 'rank'], unique=False)

    op.create_table('person',
    sa.Column('ws', sa.Integer(), nullable=False),
    sa.Column('email', sa.Text(), nullable=False),
    sa.Column('name', sa.Text(), nullable=False),
    sa.Column('timezone', sa.Text(), nullable=True),
    sa.Column('active', sa.BigInteger(), server_default='1', nullable=False),
    sa.PrimaryKeyConstraint('ws', 'email', name=op.f('pk_person')),
    sqlite_with_rowid=False
    )
    op.create_table('plan',
    sa.Column('ws', sa.Integer(), nullable=False),
    sa.Column('hash', sa.LargeBinary(), nullable=False),
    sa.Column('body', sa.Text(), nullable=False),
    sa.Column('source', sa.Text(), nullable=True),
    sa.Column('surface', sa.Text(), nullable=True),
    sa.PrimaryKeyConstraint('ws', 'hash', name=op.f('pk_plan')),
    sqlite_with_rowid=False
    )
    op.create_table('region',
    sa.Column('ws', sa.Integer(), nullable=False),
    sa.Column('run', sa.BigInteger(), nullable=False),
    sa.Column('path', sa.Text().with_variant(sa.Text(collation='C'), 'postgresql'), nullable=False),
    sa.Column('owner', sa.Text().with_variant(sa.Text(collation='C'), 'postgresql'), nullable=False),
    sa.Column('state', sa.Text(), nullable=False),
    sa.Column('unended', sa.BigInteger(), server_default='0', nullable=False),
    sa.Column('hot', sa.BigInteger(), server_default='0', nullable=False),
    sa.Column('opened', sa.BigInteger(), nullable=False),
    sa.Column('value', sa.Text(), nullable=True),
    sa.Column('has_value', sa.BigInteger(), server_default='0', nullable=False),
    sa.Column('error', sa.Text(), nullable=True),
    sa.Column('item', sa.Text(), nullable=True),
    sa.PrimaryKeyConstraint('ws', 'run', 'path', name=op.f('pk_region')),
    sqlite_with_rowid=False
    )
    with op.batch_alter_table('region', schema=None) as batch_op:
        batch_op.create_index('ix_region_owner', ['ws', 'run', 'owner'], unique=False, sqlite_where=sa.text("owner <> ''"), postgresql_where=sa.text("owner <> ''"))

    op.create_table('role',
    sa.Column('ws', sa.Integer(), nullable=False),
    sa.Column('name', sa.Text(), nullable=False),
    sa.Column('email', sa.Text(), nullable=False),
    sa.PrimaryKeyConstraint('ws', 'name', 'email', name=op.f('pk_role')),
    sqlite_with_rowid=False
    )
    op.create_table('run',
    sa.Column('ws', sa.Integer(), nullable=False),
    sa.Column('seq', sa.BigInteger().with_variant(sa.Integer(), 'sqlite'), autoincrement=True, nullable=False),
    sa.Column('id', sa.Text(), nullable=False),
    sa.Column('job', sa.Text(), nullable=False),
    sa.Column('owner', sa.Text().with_variant(sa.Text(collation='C'), 'postgresql'), nullable=False),
    sa.Column('plan', sa.LargeBinary(), nullable=False),
    sa.Column('state', sa.Text(), nullable=False),
    sa.Column('rev', sa.BigInteger(), server_default='0', nullable=False),
    sa.Column('n', sa.BigInteger(), server_default='0', nullable=False),
    sa.Column('hash', sa.LargeBinary(), nullable=True),
    sa.Column('created', sa.BigInteger(), nullable=False),
    sa.Column('ended', sa.BigInteger(), nullable=True),
    sa.Column('names', sa.Text(), nullable=True),
    sa.Column('customer', sa.Text(), nullable=True),
    sa.Column('parent', sa.Text(), nullable=True),
    sa.Column('told', sa.LargeBinary(), nullable=True),
    sa.Column('ends', sa.BigInteger(), nullable=True),
    sa.Column('data', sa.Text(), nullable=True),
    sa.PrimaryKeyConstraint('seq', name=op.f('pk_run')),
    sa.UniqueConstraint('ws', 'id', name=op.f('uq_run_ws_id'))
    )
    with op.batch_alter_table('run', schema=None) as batch_op:
        batch_op.create_index('ix_run_job', ['ws', 'job', 'created'], unique=False)
        batch_op.create_index('ix_run_state', ['ws', 'state', 'created'], unique=False)

    op.create_table('script',
    sa.Column('ws', sa.Integer(), nullable=False),
    sa.Column('name', sa.Text(), nullable=False),
    sa.Column('version', sa.BigInteger(), nullable=False),
    sa.Column('plan', sa.Text(), nullable=False),
    sa.Column('source', sa.Text(), nullable=True),
    sa.Column('head', sa.Text(), nullable=False),
    sa.Column('owner', sa.Text().with_variant(sa.Text(collation='C'), 'postgresql'), nullable=False),
    sa.Column('job', sa.Text(), nullable=True),
    sa.Column('created', sa.BigInteger(), nullable=False),
    sa.PrimaryKeyConstraint('ws', 'name', 'version', name=op.f('pk_script')),
    sqlite_with_rowid=False
    )
    op.create_table('session',
    sa.Column('ws', sa.Integer(), nullable=False),
    sa.Column('hash', sa.Text(), nullable=False),
    sa.Column('email', sa.Text(), nullable=False),
    sa.Column('csrf', sa.Text(), nullable=False),
    sa.Column('created', sa.BigInteger(), nullable=False),
    sa.Column('until', sa.BigInteger(), nullable=False),
    sa.PrimaryKeyConstraint('hash', name=op.f('pk_session'))
    )
    op.create_table('setting',
    sa.Column('ws', sa.Integer(), nullable=False),
    sa.Column('name', sa.Text(), nullable=False),
    sa.Column('value', sa.Text(), nullable=True),
    sa.PrimaryKeyConstraint('ws', 'name', name=op.f('pk_setting')),
    sqlite_with_rowid=False
    )
    op.create_table('standing',
    sa.Column('ws', sa.Integer(), nullable=False),
    sa.Column('script', sa.Text(), nullable=False),
    sa.Column('paused', sa.BigInteger(), server_default='0', nullable=False),
    sa.Column('told', sa.Text(), nullable=True),
    sa.PrimaryKeyConstraint('ws', 'script', name=op.f('pk_standing')),
    sqlite_with_rowid=False
    )
    op.create_table('start',
    sa.Column('ws', sa.Integer(), nullable=False),
    sa.Column('script', sa.Text(), nullable=False),
    sa.Column('event', sa.Text(), nullable=False),
    sa.Column('state', sa.Text(), nullable=False),
    sa.Column('key', sa.Text(), nullable=True),
    sa.Column('job', sa.Text(), nullable=True),
    sa.Column('run', sa.Text(), nullable=True),
    sa.Column('version', sa.BigInteger(), server_default='0', nullable=False),
    sa.Column('chain', sa.BigInteger(), server_default='0', nullable=False),
    sa.Column('names', sa.Text(), nullable=True),
    sa.Column('why', sa.Text(), nullable=True),
    sa.Column('at', sa.BigInteger(), nullable=False),
    sa.PrimaryKeyConstraint('ws', 'script', 'event', name=op.f('pk_start')),
    sqlite_with_rowid=False
    )
    with op.batch_alter_table('start', schema=None) as batch_op:
        batch_op.create_index('ix_start_at', ['ws', 'script', 'at'], unique=False)
        batch_op.create_index('ix_start_open', ['ws', 'script', 'key', 'at'], unique=False, sqlite_where=sa.text("state in ('live','queued')"), postgresql_where=sa.text("state in ('live','queued')"))
        batch_op.create_index('ix_start_run', ['run'], unique=False)

    op.create_table('taken',
    sa.Column('ws', sa.Integer(), nullable=False),
    sa.Column('run', sa.BigInteger(), nullable=False),
    sa.Column('event', sa.Text(), nullable=False),
    sa.Column('path', sa.Text().with_variant(sa.Text(collation='C'), 'postgresql'), nullable=False),
    sa.PrimaryKeyConstraint('ws', 'run', 'event', name=op.f('pk_taken')),
    sqlite_with_rowid=False
    )
    op.create_table('timer',
    sa.Column('ws', sa.Integer(), nullable=False),
    sa.Column('run', sa.BigInteger(), nullable=False),
    sa.Column('path', sa.Text().with_variant(sa.Text(collation='C'), 'postgresql'), nullable=False),
    sa.Column('kind', sa.Text(), nullable=False),
    sa.Column('due', sa.BigInteger(), nullable=False),
    sa.PrimaryKeyConstraint('ws', 'run', 'path', 'kind', name=op.f('pk_timer')),
    sqlite_with_rowid=False
    )
    with op.batch_alter_table('timer', schema=None) as batch_op:
        batch_op.create_index('ix_timer_due', ['due'], unique=False)

    op.create_table('token',
    sa.Column('ws', sa.Integer(), nullable=False),
    sa.Column('hash', sa.Text(), nullable=False),
    sa.Column('email', sa.Text(), nullable=False),
    sa.Column('name', sa.Text(), nullable=True),
    sa.Column('created', sa.BigInteger(), nullable=False),
    sa.Column('until', sa.BigInteger(), nullable=True),
    sa.Column('used', sa.BigInteger(), nullable=True),
    sa.PrimaryKeyConstraint('hash', name=op.f('pk_token'))
    )
    op.create_table('trigger',
    sa.Column('ws', sa.Integer(), nullable=False),
    sa.Column('stream', sa.Text(), nullable=False),
    sa.Column('script', sa.Text(), nullable=False),
    sa.Column('n', sa.BigInteger(), nullable=False),
    sa.Column('body', sa.Text(), nullable=False),
    sa.Column('due', sa.BigInteger(), nullable=True),
    sa.PrimaryKeyConstraint('ws', 'stream', 'script', 'n', name=op.f('pk_trigger')),
    sqlite_with_rowid=False
    )
    with op.batch_alter_table('trigger', schema=None) as batch_op:
        batch_op.create_index('ix_trigger_due', ['ws', 'due'], unique=False, sqlite_where=sa.text('due is not null'), postgresql_where=sa.text('due is not null'))
        batch_op.create_index('ix_trigger_script', ['ws', 'script'], unique=False)

    op.create_table('wait',
    sa.Column('ws', sa.Integer(), nullable=False),
    sa.Column('run', sa.BigInteger(), nullable=False),
    sa.Column('path', sa.Text().with_variant(sa.Text(collation='C'), 'postgresql'), nullable=False),
    sa.Column('stream', sa.Text(), nullable=False),
    sa.Column('key', sa.Text(), nullable=True),
    sa.Column('since', sa.BigInteger(), nullable=False),
    sa.Column('where', sa.Text(), nullable=True),
    sa.PrimaryKeyConstraint('ws', 'run', 'path', 'stream', name=op.f('pk_wait')),
    sqlite_with_rowid=False
    )
    with op.batch_alter_table('wait', schema=None) as batch_op:
        batch_op.create_index('ix_wait_stream', ['ws', 'stream', 'key'], unique=False)

    # ### end Alembic commands ###


def downgrade() -> None:
    with op.batch_alter_table('wait', schema=None) as batch_op:
        batch_op.drop_index('ix_wait_stream')

    op.drop_table('wait')
    with op.batch_alter_table('trigger', schema=None) as batch_op:
        batch_op.drop_index('ix_trigger_script')
        batch_op.drop_index('ix_trigger_due', sqlite_where=sa.text('due is not null'), postgresql_where=sa.text('due is not null'))

    op.drop_table('trigger')
    op.drop_table('token')
    with op.batch_alter_table('timer', schema=None) as batch_op:
        batch_op.drop_index('ix_timer_due')

    op.drop_table('timer')
    op.drop_table('taken')
    with op.batch_alter_table('start', schema=None) as batch_op:
        batch_op.drop_index('ix_start_run')
        batch_op.drop_index('ix_start_open', sqlite_where=sa.text("state in ('live','queued')"), postgresql_where=sa.text("state in ('live','queued')"))
        batch_op.drop_index('ix_start_at')

    op.drop_table('start')
    op.drop_table('standing')
    op.drop_table('setting')
    op.drop_table('session')
    op.drop_table('script')
    with op.batch_alter_table('run', schema=None) as batch_op:
        batch_op.drop_index('ix_run_state')
        batch_op.drop_index('ix_run_job')

    op.drop_table('run')
    op.drop_table('role')
    with op.batch_alter_table('region', schema=None) as batch_op:
        batch_op.drop_index('ix_region_owner', sqlite_where=sa.text("owner <> ''"), postgresql_where=sa.text("owner <> ''"))

    op.drop_table('region')
    op.drop_table('plan')
    op.drop_table('person')
    with op.batch_alter_table('op', schema=None) as batch_op:
        batch_op.drop_index('ix_op_region')
        batch_op.drop_index('ix_op_planned', sqlite_where=sa.text("state = 'planned' and place is not null"), postgresql_where=sa.text("state = 'planned' and place is not null"))
        batch_op.drop_index('ix_op_pending', sqlite_where=sa.text("state in ('running','waiting','gated','uncertain')"), postgresql_where=sa.text("state in ('running','waiting','gated','uncertain')"))

    op.drop_table('op')
    op.drop_table('more')
    op.drop_table('member')
    op.drop_table('login')
    op.drop_table('lease')
    with op.batch_alter_table('job', schema=None) as batch_op:
        batch_op.drop_index('ix_job_conversation')

    op.drop_table('job')
    op.drop_table('identity')
    op.drop_table('history')
    with op.batch_alter_table('event', schema=None) as batch_op:
        batch_op.drop_index('ix_event_unrouted', sqlite_where=sa.text('routed = 0'), postgresql_where=sa.text('routed = 0'))
        batch_op.drop_index('ix_event_sender')
        batch_op.drop_index('ix_event_at')

    op.drop_table('event')
    op.drop_table('endpoint')
    op.drop_table('element')
    with op.batch_alter_table('delivery', schema=None) as batch_op:
        batch_op.drop_index('ix_delivery_stale', sqlite_where=sa.text('outcome is not null and shown = 0'), postgresql_where=sa.text('outcome is not null and shown = 0'))
        batch_op.drop_index('ix_delivery_queued', sqlite_where=sa.text("state in ('queued','sent')"), postgresql_where=sa.text("state in ('queued','sent')"))
        batch_op.drop_index('ix_delivery_open', sqlite_where=sa.text("kind in ('card','approval','doubt') and outcome is null and state <> 'held'"), postgresql_where=sa.text("kind in ('card','approval','doubt') and outcome is null and state <> 'held'"))
        batch_op.drop_index('ix_delivery_held', sqlite_where=sa.text("state = 'held' and outcome is null"), postgresql_where=sa.text("state = 'held' and outcome is null"))

    op.drop_table('delivery')
    with op.batch_alter_table('call', schema=None) as batch_op:
        batch_op.drop_index('ix_call_open', sqlite_where=sa.text("state in ('queued','sent')"), postgresql_where=sa.text("state in ('queued','sent')"))

    op.drop_table('call')
    op.drop_table('blob')
    op.drop_table('binding')
    # ### end Alembic commands ###

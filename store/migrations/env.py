"""Alembic's door: one transaction a migration, batch mode for SQLite."""

from alembic import context

from store.dialect import engine_for
from store.tables import complete


def run() -> None:
    url = str(context.config.attributes.get("url") or context.config.get_main_option("sqlalchemy.url"))
    engine = engine_for(url)
    with engine.connect() as connection:
        context.configure(
            connection=connection, target_metadata=complete(), render_as_batch=True, transaction_per_migration=True
        )
        with context.begin_transaction():
            context.run_migrations()
        connection.commit()
    engine.dispose()


run()

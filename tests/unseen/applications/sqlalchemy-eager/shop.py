"""Orders and their customers by SQLAlchemy: `shop.py setup|lazy|eager SOCKETS`."""

import sys

from sqlalchemy import ForeignKey, create_engine, select
from sqlalchemy.orm import DeclarativeBase, Mapped, Session, mapped_column, relationship, selectinload


class Base(DeclarativeBase):
    pass


class Customer(Base):
    __tablename__ = "customer"
    id: Mapped[int] = mapped_column(primary_key=True)
    name: Mapped[str]


class Order(Base):
    __tablename__ = "orders"
    id: Mapped[int] = mapped_column(primary_key=True)
    customer_id: Mapped[int] = mapped_column(ForeignKey("customer.id"))
    customer: Mapped[Customer] = relationship()


mode, sockets = sys.argv[1:]
engine = create_engine(f"postgresql+psycopg2://postgres@/postgres?host={sockets}")
if mode == "setup":
    Base.metadata.create_all(engine)
    with Session(engine) as session:
        session.add_all([Customer(id=i, name=f"customer {i}") for i in range(1, 1001)])
        session.flush()
        session.add_all([Order(id=i, customer_id=i) for i in range(1, 1001)])
        session.commit()
else:
    orders = select(Order)
    if mode == "eager":
        orders = orders.options(selectinload(Order.customer))
    for _ in range(5):
        with Session(engine) as session:
            print(sum(len(order.customer.name) for order in session.scalars(orders)))
